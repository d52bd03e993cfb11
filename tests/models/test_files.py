from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakscope.errors import InputError, UntrustedFileError
from leakscope.models import as_model, load_model
from leakscope.records import unpacking

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10) % 2
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


class Payload:
    """What a hostile file holds: unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def save_pickle(thing: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(thing))


def save_gzipped(thing: Any, path: Path) -> None:
    path.write_bytes(gzip.compress(pickle.dumps(thing)))


def save_zipped(thing: Any, path: Path) -> None:
    """As torch does: a pickle in a zip archive."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(thing))


SAVERS: dict[str, Any] = {
    "pickle": save_pickle,
    "joblib": joblib.dump,
    "joblib compressed": lambda thing, path: joblib.dump(thing, path, compress=3),
    "joblib lzma": lambda thing, path: joblib.dump(thing, path, compress=("lzma", 3)),
    "gzip": save_gzipped,
}


@pytest.mark.parametrize("compressed", [False, True])
def test_skops_files_load(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "model.skops"
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    skops.io.dump(MODEL, path, compression=method)
    for given in (path, str(path)):
        model = as_model(load_model(given))
        np.testing.assert_array_equal(model.predict_proba(X), MODEL.predict_proba(X))


@pytest.mark.parametrize("how", SAVERS)
@pytest.mark.parametrize("name", ["model.pkl", "model.skops"])
def test_pickles_load_if_trusted_and_only_then(tmp_path: Path, how: str, name: str) -> None:
    path = tmp_path / name
    SAVERS[how](MODEL, path)
    with pytest.raises(UntrustedFileError, match=r"can run any code .*--trust-pickle") as caught:
        load_model(path)
    assert repr(str(path)) in str(caught.value)
    model = as_model(load_model(path, trust_pickle=True))
    np.testing.assert_array_equal(model.predict_proba(X), MODEL.predict_proba(X))


@pytest.mark.parametrize("how", [*SAVERS, "zip"])
def test_a_hostile_pickle_is_not_run_when_it_is_refused(tmp_path: Path, how: str) -> None:
    path, touched = tmp_path / "model.pkl", tmp_path / "touched"
    {**SAVERS, "zip": save_zipped}[how](Payload(touched), path)
    with pytest.raises(UntrustedFileError):
        load_model(path)
    assert not touched.exists()
    if how != "zip":  # the payload is live: trusted, it does what it says
        load_model(path, trust_pickle=True)
        assert touched.exists()


def test_a_skops_file_of_unknown_types_is_refused_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    skops.io.dump(make_pipeline(FunctionTransformer(json.dumps), LogisticRegression()), path)
    with pytest.raises(
        UntrustedFileError, match=r"not known to be safe: json\.dumps; pass --trust"
    ):
        load_model(path)
    assert load_model(path, trust_pickle=True).steps[0][1].func is json.dumps


class Trap:
    """An object that makes a folder when it is put together from a skops file."""

    def __getstate__(self) -> dict[str, str]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, str]) -> None:
        Path(state["path"]).mkdir()

    def __init__(self, path: Path) -> None:
        self.path = str(path)


def test_a_hostile_skops_file_is_not_run_when_it_is_refused(tmp_path: Path) -> None:
    path, touched = tmp_path / "model.skops", tmp_path / "touched"
    skops.io.dump(Trap(touched), path)
    with pytest.raises(UntrustedFileError, match="Trap"):
        load_model(path)
    assert not touched.exists()
    load_model(path, trust_pickle=True)
    assert touched.exists()


def bomb() -> bytes:
    """A valid archive of zeros, a thousand times smaller than what it unpacks to."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", "{}")
        archive.writestr("1.npy", bytes(2**22))
    return buffer.getvalue()


def test_a_file_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.skops"
    path.write_bytes(bomb())
    monkeypatch.setattr(unpacking, "LARGE", 2**21)
    for trust in (False, True):
        with pytest.raises(
            UntrustedFileError, match=r"would unpack to 0\.0 GiB, more than 100 tim"
        ):
            load_model(path, trust_pickle=trust)
    # Below the size at which it matters, a file may shrink as well as it can.
    monkeypatch.setattr(unpacking, "LARGE", 2**30)
    with pytest.raises(InputError, match="could not be read"):
        load_model(path)


def skops_bytes() -> bytes:
    return skops.io.dumps(MODEL)


def damaged(place: float) -> bytes:
    """A skops file with a stretch of it overwritten."""
    content = bytearray(skops_bytes())
    start = int(place * len(content))
    content[start : start + 40] = b"\x00" * 40
    return bytes(content)


def zip_of(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return buffer.getvalue()


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; save the model again"),
    "cut short": (skops_bytes()[:-60], "is cut short; save or copy it again"),
    "half": (skops_bytes()[:200], "is cut short; save or copy it again"),
    "overwritten": (damaged(0.3), "could not be read"),
    "no JSON": (zip_of(schema_json="{"), "could not be read"),
    "empty schema": (zip_of(schema_json="{}"), "could not be read"),
    "list for a schema": (zip_of(schema_json="[]"), "could not be read"),
    "deep schema": (zip_of(schema_json="[" * 100_000), "could not be read"),
    "text": (b"age,job\n3,clerk\n", "could not be read"),
    "pickle cut short": (pickle.dumps(MODEL)[:50], "could not be read"),
    "half a gzip": (gzip.compress(pickle.dumps(MODEL))[:40], "could not be read"),
    "noise": (bytes(range(256)), "could not be read"),
    "a zip of something else": (zip_of(data_pkl="x"), "could not be read"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_sentence(tmp_path: Path, case: str) -> None:
    content, sentence = BROKEN[case]
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        load_model(path, trust_pickle=True)
    assert "\n" not in str(caught.value)
    assert repr(str(path)) in str(caught.value)


def test_a_whole_model_needs_no_network(tmp_path: Path) -> None:
    skops.io.dump(MODEL, tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"holds a whole model and not the weights .* leave net"):
        load_model(tmp_path / "model.skops", network="mlp:2,2")


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no model file '.*none\.skops'"):
        load_model(tmp_path / "none.skops")
    with pytest.raises(InputError, match="is a folder; give the path of a model file"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3),
        GradientBoostingClassifier(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3),
        KNeighborsClassifier(),
        MLPClassifier((3,), max_iter=500, tol=1),
        CalibratedClassifierCV(DecisionTreeClassifier()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_scikit_learn_made_loads_without_trust(estimator: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.arange(60) % 2
    estimator.fit(X, y)
    skops.io.dump(estimator, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), estimator.predict_proba(X))
