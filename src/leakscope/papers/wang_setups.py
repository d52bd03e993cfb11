"""What Wang et al. (2020) train and on what: every set-up of their section 5, in one place.

Section 5.1 and the protocol of docs/papers.md: members, the reference records D′ of a defense and
the non-members that attacks are judged on are three disjoint random sets of equal size. Training
was chosen for the accuracy on others, but for the activation of Location-30: tanh is that of an
earlier measurement (an attack accuracy of .930 at a test accuracy of .529, without a defense),
which it meets; ReLU is more accurate there (.574) and leaks less (.885 to .894). How fast the
networks of MNIST and Location-30 learn while they are pruned was chosen by Algorithm 1, see
wang_search.py: on MNIST with images that no table has; on Location-30, which has too few records
for that, with the members and D′ of the tables. There an earlier search, with 466 members, had
found only the recipe's own rate accurate enough, and the tables had been computed with it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from leakscope.datasets import load_dataset
from leakscope.defenses.dpsgd import DPSGD
from leakscope.defenses.minmax import MinMax
from leakscope.defenses.pruning import Pruning
from leakscope.errors import MissingDataError
from leakscope.papers.experiment import Scale, Setting
from leakscope.papers.wang_attack import InferenceAttack
from leakscope.papers.wang_networks import build
from leakscope.protocols import Attack, Defense
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

PAPER = "Wang et al. 2020"

# Models of each defense, on records of their own division.
SEEDS: dict[Scale, int] = {"quick": 3, "full": 3}
# The ε of Table 2.
EPSILON = 6.28

# The paper's adversary sees f(x) and y: all attacks on the predictions that need no other model.
THRESHOLDS = ("loss", "confidence", "entropy", "modified-entropy")
ATTACKS: tuple[str | Attack, ...] = (
    *THRESHOLDS, "label-gap", "gradient-boosting", "neural-network", InferenceAttack(),
)  # fmt: skip

SMALL = {"optimizer": "adam", "lr": 1e-3, "batch_size": 64}
LARGE = {
    "optimizer": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4, "batch_size": 128,
    "epochs": 60,
}  # fmt: skip
ALL_OF_IT = (
    "three disjoint sets of 60,000 images would need 180,000, so that each is a third of the 60,000"
)


@dataclass(frozen=True)
class Setup:
    """A data set, a network, how it is trained, and how strongly it is defended.

    file: what has to be in the data folder; nothing where it comes with the package. members: by
    the scale, None for a third of all records. draws: whether the loader draws some of its records.
    options, at: those of the loader, always and by the scale. apart: those with which it reads
    records that no table has, for Algorithm 1. training: options of a TorchRecipe. sizes: a
    sentence on the number of members, where it needs one. changed: fields that are others at a
    scale, see ``at_scale``.
    """

    name: str
    dataset: str
    network: str
    file: str = ""
    members: Mapping[Scale, int | None] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    pruning: Pruning = field(default_factory=Pruning)
    minmax: MinMax = field(default_factory=MinMax)
    options: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[Scale, Mapping[str, Any]] = field(default_factory=dict)
    apart: Mapping[str, Any] | None = None
    draws: bool = False
    sizes: str = ""
    changed: Mapping[Scale, Mapping[str, Any]] = field(default_factory=dict)

    def at_scale(self, scale: Scale) -> Setup:
        """The set-up with what is different at this scale."""
        return replace(self, **self.changed.get(scale, {}))

    def load(self, setting: Setting) -> Records:
        """The records that members, D′ and others are drawn from, or an error on a missing file."""
        options = {**self.options, **self.at.get(setting.scale, {})}
        members = self.members[setting.scale]
        if self.draws and members is not None:
            options |= {"n": 3 * members, "seed": setting.seed}
        return as_network_takes(load_dataset(self.dataset, folder=setting.data, **options))

    def load_apart(self, setting: Setting) -> Records | None:
        """Records that are in none of the tables, or None where there are no others."""
        if self.apart is None:
            return None
        return as_network_takes(load_dataset(self.dataset, folder=setting.data, **self.apart))

    @property
    def recipe(self) -> TorchRecipe:
        """How the undefended network is trained."""
        return TorchRecipe(self.name, partial(build, self.network), **self.training)

    def defense(self, kind: str) -> tuple[Defense, ...]:
        """What stands for "prune", "minmax" or "dpsgd", or several joined by +."""
        known: dict[str, Defense] = {
            "prune": self.pruning, "minmax": self.minmax, "dpsgd": DPSGD(EPSILON),
        }  # fmt: skip
        return tuple(known[part] for part in kind.split("+"))


MNIST = Setup(
    "MNIST-LeNet-5", "mnist", "lenet5", "mnist.npz", {"quick": 2000, "full": 20_000},
    {**SMALL, "lr": 3e-3, "epochs": 30}, Pruning(rate=0.3, retrain_rate=0.03), MinMax(1.0),
    options={"part": "train"}, draws=True, apart={"part": "test"}, sizes=ALL_OF_IT,
)  # fmt: skip
LOCATION = Setup(
    "Location-30-MLP", "location30", "mlp-1024", "location30.csv", {"quick": 1200, "full": 1600},
    {**SMALL, "epochs": 50}, Pruning(rate=0.3, retrain_rate=0.03), MinMax(0.3),
    sizes="not in the paper: its records leak so much that a defense can be seen to work",
)  # fmt: skip
CIFAR_CNN = Setup(
    "CIFAR-10-CNN", "cifar10", "cnn4", "cifar10.npz", {"quick": 2000, "full": 2000},
    {**SMALL, "epochs": 30}, minmax=MinMax(1.0), draws=True,
)  # fmt: skip


def _cifar(classes: int, name: str, network: str, ratio: float) -> Setup:
    file = "cifar10.npz" if classes == 10 else "cifar-100-python"
    return Setup(
        f"CIFAR-{classes}-{name}", f"cifar{classes}", network, file, {"full": 20_000}, LARGE,
        Pruning(ratio), MinMax(1.0), draws=True, sizes=ALL_OF_IT,
    )  # fmt: skip


CIFAR = (
    _cifar(10, "VGG16", "vgg16", 13.84),
    _cifar(10, "MobileNetV2", "mobilenet-v2", 10.06),
    _cifar(10, "ResNet-18", "resnet18", 10.54),
    _cifar(100, "VGG16", "vgg16", 13.84),
    _cifar(100, "MobileNetV2", "mobilenet-v2", 10.06),
    _cifar(100, "ResNet-18", "resnet18", 10.54),
)
IMAGENET = tuple(
    Setup(
        f"ImageNet-{name}", "image-folder", network, "imagenet", {"quick": 60, "full": 2000},
        LARGE, Pruning(ratio), options={"path": "imagenet"}, draws=True,
        at={"quick": {"classes": 10, "size": 112}, "full": {"classes": 100}},
        sizes="some classes alone, for memory; at quick few epochs of few images of 112 × 112",
        changed={
            "quick": {
                "training": {**LARGE, "epochs": 12},
                "pruning": Pruning(ratio, epochs=2, retrain=3),
            }
        },
    )
    for name, network, ratio in (
        ("MobileNetV2", "mobilenet-v2", 3.27), ("ResNet-18", "resnet18", 3.37),
    )
)  # fmt: skip
# Real images that come with scikit-learn, where no file of the paper's data sets is there.
STAND_IN = Setup(
    "Digits-MLP", "digits", "mlp-256", members={"quick": None, "full": None},
    training={**SMALL, "epochs": 30}, sizes="stands in for data sets whose files are not there",
)  # fmt: skip
SETUPS = {one.name: one for one in (MNIST, LOCATION, CIFAR_CNN, *CIFAR, *IMAGENET, STAND_IN)}
# Those whose pruning was chosen by Algorithm 1.
SEARCHED = (MNIST.name, LOCATION.name)


@dataclass(frozen=True, eq=False)
class Pool:
    """A set-up with its records."""

    setup: Setup
    records: Records


def pools(setting: Setting, names: Sequence[str]) -> tuple[list[Pool], list[str]]:
    """The set-ups of these names whose data are there, and a sentence for each that is not.

    Where none is there, digits stand in.
    """
    setting.progress("reading the data sets", 0, 0)
    found, missing = list[Pool](), list[str]()
    for setup in (SETUPS[name].at_scale(setting.scale) for name in names):
        try:
            found.append(Pool(setup, setup.load(setting)))
        except MissingDataError:
            missing.append(
                f"{setup.name} is left out: {setup.file} is not in the data folder; name the "
                "folder that has it with --data."
            )
    if not found:
        found.append(Pool(STAND_IN, STAND_IN.load(setting)))
        missing.append(
            f"{STAND_IN.name}, images of 8 × 8 digits that come with scikit-learn, stands in; it "
            "says nothing of the data sets of the paper."
        )
    return found, missing


def first_there(setting: Setting, names: Sequence[str]) -> tuple[Pool, list[str]]:
    """The first of these set-ups whose data are there, and what is said of those before it."""
    missing = list[str]()
    for name in names:
        found, said = pools(setting, [name])
        if found[0].setup.name == name:
            return found[0], missing
        missing.append(said[0])
    return found[0], [*missing, said[-1]]


def repetitions(setting: Setting) -> int:
    """How many models are trained of each defense."""
    return SEEDS[setting.scale] if setting.seeds is None else setting.seeds


def setup_of(found: Sequence[Pool], setting: Setting, **more: Any) -> dict[str, Any]:
    """What the experiments of section 5 have in common."""
    return {
        "setups": {one.setup.name: _described(one, setting) for one in found},
        "division": "members, reference records (D′) and non-members for the evaluation are three "
        "disjoint random sets of equal size, drawn anew for each seed",
        "scale": setting.scale,
        "seed": setting.seed,
        "seeds": repetitions(setting),
        **more,
    }


def _described(pool: Pool, setting: Setting) -> dict[str, Any]:
    setup = pool.setup
    members = setup.members[setting.scale] or len(pool.records) // 3
    described = {
        "dataset": setup.dataset,
        "network": setup.network,
        "members": members,
        "reference": members,
        "nonmembers": members,
        "training": dict(setup.training),
        "prune": str(setup.pruning),
        "minmax": str(setup.minmax),
    }
    return described | ({"sizes": setup.sizes} if setup.sizes else {})


def as_network_takes(records: Records) -> Records:
    """Images as (n, channels, height, width) of 32-bit numbers, bytes as shares of 255."""
    X: Any = records.X
    if X.ndim == 3:
        X = X[:, None]
    elif X.ndim == 4 and X.shape[-1] in (1, 3):
        X = X.transpose(0, 3, 1, 2)
    scale = 255 if X.dtype == np.uint8 else 1
    X = np.divide(X, scale, dtype=np.float32, order="C")
    return Records(X, records.y, unit=records.unit, name=records.name)
