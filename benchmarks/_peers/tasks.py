"""What is measured: data and a fitted model, the same for every tool, and who runs what on it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CODE = Path(__file__).resolve().parents[1] / "peer_code"

Given = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One tool at one task.

    code: the file of user code. shows: what it computes, if that differs from others of the task.
    beside: files that its users have to write too. rival: whether Leakscope's first entry must not
    be slower than it. reason: why it is, where it is.
    """

    tool: str
    environment: str
    code: str
    shows: str
    beside: tuple[str, ...] = ()
    rival: bool = True
    reason: str = ""


@dataclass(frozen=True)
class Task:
    """Data and a model, made once, and the tools that are given them.

    compared: "auc", or "values" with those of the entry named by reference: "difference", the
    largest, or "correlation".
    """

    name: str
    title: str
    prepare: Callable[[Path], Given]
    entries: tuple[Entry, ...]
    compared: str = "auc"
    reference: str = ""


# --- data and models -----------------------------------------------------------------------------


def cancer(shadows: int = 100) -> Callable[[Path], Given]:
    """SACRO-ML's example: a forest on 70 % of the breast-cancer data."""

    def prepare(folder: Path) -> Given:
        from sklearn.datasets import load_breast_cancer
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import train_test_split

        X, y = load_breast_cancer(return_X_y=True)
        X_in, X_out, y_in, y_out = train_test_split(X, y, test_size=0.3, random_state=0)
        model = RandomForestClassifier(random_state=0).fit(X_in, y_in)
        return _sides(X_in, y_in, X_out, y_out) | {"model": model, "shadows": shadows}

    return prepare


def adult(records: int, shadows: int = 0) -> Callable[[Path], Given]:
    """A forest on half of so many records of Adult."""

    def prepare(folder: Path) -> Given:
        from sklearn.ensemble import RandomForestClassifier

        given = _adult(records, records // 2, np.float64)
        model = RandomForestClassifier(random_state=0).fit(given["X_in"], given["y_in"])
        return given | {"model": model, "shadows": shadows}

    return prepare


def network(records: int, shadows: int = 0) -> Callable[[Path], Given]:
    """A network of two hidden layers on half of so many records of Adult."""

    def prepare(folder: Path) -> Given:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        sys.path.insert(0, str(CODE))
        from architecture import Network
        from training import train

        given = _adult(records, records // 2, np.float32)
        torch.manual_seed(0)
        found = Network()
        members = torch.from_numpy(given["X_in"]), torch.from_numpy(given["y_in"])
        train(found, DataLoader(TensorDataset(*members), batch_size=128, shuffle=True))
        torch.save(found.state_dict(), folder / "network.pt")
        return given | {"shadows": shadows}

    return prepare


def regression(members: int, queries: int) -> Callable[[Path], Given]:
    """A logistic regression on so many records of Adult, and records to ask it about."""

    def prepare(folder: Path) -> Given:
        from sklearn.linear_model import LogisticRegression

        given = _adult(members + queries, members, np.float64)
        model = LogisticRegression(solver="newton-cholesky", tol=1e-10)
        model.fit(given["X_in"], given["y_in"])
        # Its parameters alone: a pickle of the model would not be read by every release of numpy.
        return given | {"coef": model.coef_, "intercept": model.intercept_}

    return prepare


def _adult(records: int, members: int, dtype: type) -> Given:
    """The first so many records of a shuffled Adult are members, one-hot and standardized."""
    from leakscope import load_dataset

    found = load_dataset("adult").sample(records, 0)
    X, y = np.asarray(found.X, dtype), np.asarray(found.y, np.int64)
    return _sides(X[:members], y[:members], X[members:], y[members:])


def _sides(X_in: Any, y_in: Any, X_out: Any, y_out: Any) -> Given:
    return {"X_in": X_in, "y_in": y_in, "X_out": X_out, "y_out": y_out}


def save(given: Given, folder: Path) -> None:
    """Write what was prepared to where ``given`` reads it."""
    import joblib

    for name, value in given.items():
        if hasattr(value, "predict"):
            joblib.dump(value, folder / f"{name}.joblib")
        else:
            np.save(folder / f"{name}.npy", value)


# --- the tasks -----------------------------------------------------------------------------------

TAUGHT = "boosted trees on predictions; each half of the records is scored by the other"
EVERYTHING = "all attacks, controls, report; AUC of the best"
WORST = "ten forests, ten more on noise, report; AUC of the first, on half of the records"
FOREST = "one forest on predictions and labels, judged on half of the records"
MORE = (
    "it teaches the attack on either half, so that every record is judged, repeats it on a model "
    "that says nothing, and looks whether the sides differ before the model enters"
)
ONE_MODEL = (
    Entry("Leakscope", "leakscope", "one_model_leakscope.py", TAUGHT, reason=MORE),
    Entry("Leakscope, all", "leakscope", "one_model_leakscope_all.py", EVERYTHING, rival=False),
    Entry("ART", "art", "one_model_art.py", FOREST),
    Entry("SACRO-ML", "sacroml", "one_model_sacroml.py", WORST),
)
CHECKS = (
    "it repeats the attack on a model that says nothing, looks whether the sides differ before the "
    "model enters, and keeps every shadow model on disk"
)
PER_CLASS = "a classifier per class on predictions"
SHADOWS = (
    Entry("Leakscope", "leakscope", "shadows_leakscope.py", PER_CLASS, reason=CHECKS),
    Entry("Leakscope, all", "leakscope", "shadows_leakscope_all.py", EVERYTHING, rival=False),
    Entry("ART", "art", "shadows_art.py", "one forest on predictions and labels"),
    Entry("SACRO-ML", "sacroml", "lira_sacroml.py", "LiRA offline, report"),
)

TASKS = (
    Task(
        "cancer-one",
        "SACRO-ML's example, one forest of the breast-cancer data, 398 members and 171 others",
        cancer(),
        ONE_MODEL,
    ),
    Task(
        "cancer-shadows",
        "SACRO-ML's example, the same forest and 100 shadow models",
        cancer(100),
        (
            Entry(
                "Leakscope",
                "leakscope",
                "lira_leakscope.py",
                "LiRA offline, report",
                reason="it draws the pictures of its report, keeps every shadow model on disk, and "
                "measures leakage on all of them",
            ),
            *SHADOWS[2:],
        ),
    ),
    Task(
        "adult-one",
        "ART's notebook, one forest, 6,480 members and 6,480 others, Adult in place of Nursery",
        adult(12_960),
        (ONE_MODEL[0], *ONE_MODEL[2:]),
    ),
    Task(
        "adult-shadows",
        "ART's notebook of shadow models, a forest of 1,620 members, 1,620 others, and 3 shadows",
        adult(3240, 3),
        SHADOWS,
    ),
    Task(
        "network-one",
        "auditml's quick start, one network, 2,000 members and 2,000 others of Adult",
        network(4000),
        (
            Entry(
                "Leakscope",
                "leakscope-torch",
                "network_one_leakscope.py",
                "loss, report",
                reason="it draws the pictures of its report, repeats the attack on a model that "
                "says nothing, and looks whether the sides differ before the model enters",
            ),
            Entry("auditml", "auditml", "network_one_auditml.py", "loss, report"),
            Entry("ART", "art-torch", "network_one_art.py", "a forest on losses, half judged"),
        ),
    ),
    Task(
        "network-shadows",
        "The same network and auditml's 4 shadow models, of ten epochs",
        network(4000, 4),
        (
            Entry(
                "Leakscope",
                "leakscope-torch",
                "network_shadows_leakscope.py",
                "a classifier per class on predictions, report",
            ),
            Entry(
                "Leakscope",
                "leakscope-torch",
                "network_lira_leakscope.py",
                "LiRA offline, report",
                rival=False,
            ),
            Entry("auditml", "auditml", "network_shadows_auditml.py", "a network on predictions"),
            Entry("ART", "art-torch", "network_shadows_art.py", "a forest on predictions, labels"),
            Entry(
                "SACRO-ML",
                "sacroml",
                "network_shadows_sacroml.py",
                "LiRA offline, report",
                beside=("training.py",),
            ),
        ),
    ),
    Task(
        "gradients",
        "Integrated gradients of that network, 2,000 records, 50 steps",
        network(4000),
        (
            Entry(
                "Leakscope",
                "leakscope-torch",
                "integrated_gradients_leakscope.py",
                "in parts that fit into memory",
                reason="it has scikit-learn, scipy and pandas to import",
            ),
            Entry("captum", "captum", "integrated_gradients_captum.py", "all at once"),
        ),
        compared="difference",
        reference="captum",
    ),
    Task(
        "influence",
        "Influence of 2,000 members on 500 others, logistic regression of Adult",
        regression(2000, 500),
        (
            Entry("Leakscope", "leakscope", "influence_leakscope.py", "to first order"),
            Entry("Leakscope, exact", "leakscope", "influence_leakscope_exact.py", "every model"),
            Entry("pyDVL", "pydvl", "influence_pydvl.py", "to first order, intercept penalized"),
        ),
        compared="correlation",
        reference="Leakscope, exact",
    ),
    Task(
        "leave-one-out",
        "What each of 300 members is worth to 500 others, logistic regression of Adult",
        regression(300, 500),
        (
            Entry("Leakscope", "leakscope", "leave_one_out_leakscope.py", "all models at once"),
            Entry(
                "scikit-learn", "scikit-learn", "leave_one_out_sklearn.py", "refitted, tol 1e-10"
            ),
            Entry("pyDVL", "pydvl", "leave_one_out_pydvl.py", "refitted by its valuation"),
        ),
        compared="difference",
        reference="scikit-learn",
    ),
)
