"""The networks that section 4 of Shokri, Strobel & Zick (2021) attacks, stopped at chosen gaps.

Section 4.3: tanh networks by Adagrad, 10,000 members and as many others of each data set. One
training gives the models of all gaps: each is what stopping at that gap would have given.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.datasets import load_dataset
from leakscope.errors import MissingDataError
from leakscope.evidence import Folds
from leakscope.papers.experiment import Scale, Setting
from leakscope.papers.shokri_parallel import each
from leakscope.protocols import Bools, Model
from leakscope.records import Records

# The gaps between the accuracy in training and on others at which training stops.
LEVELS: dict[Scale, tuple[float, ...]] = {
    "quick": (0.0, 0.1, 0.25),
    "full": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25),
}
# Networks that are trained of each data set, on records of their own.
SEEDS: dict[Scale, int] = {"quick": 1, "full": 3}
# Records that are drawn for each one that is a member: others, validation, and some to drop.
DRAWN = 4


@dataclass(frozen=True)
class Source:
    """A data set, how many of its records are members, and the network that is trained on them.

    file: what has to be in the data folder, nothing where it is not read from there. wide: whether
    it has more than a few hundred features, as those have that leak by gradients.
    """

    name: str
    title: str
    network: str
    members: Mapping[Scale, int]
    epochs: Mapping[Scale, int]
    wide: bool = True
    file: str = ""
    optimizer: str = "adagrad"
    lr: float = 0.01
    decay: float = 1e-7
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self, setting: Setting) -> Records:
        """All records that there are, or a sentence on the file that is missing."""
        records = load_dataset(self.name, folder=setting.data, **self.options)
        if records.X.ndim == 3:  # grey images are vectors here, as the networks take them
            return Records(np.asarray(records.X).reshape(len(records), -1), records.y)
        return records


def _same(number: int) -> dict[Scale, int]:
    return {"quick": number, "full": number}


SOURCES = (
    Source(
        "purchase100", "Purchase", "shokri-purchase", {"quick": 2000, "full": 10_000}, _same(50),
        file="purchase100.npz",
    ),
    Source(
        "texas100", "Texas", "shokri-texas", {"quick": 1000, "full": 10_000},
        {"quick": 50, "full": 200}, file="texas100.npz",
    ),
    Source(
        "location30", "Location-30", "shokri-location", _same(2000), _same(50),
        file="location30.csv",
    ),
    Source(
        "cifar10", "CIFAR-10", "shokri-cifar", {"quick": 1000, "full": 10_000}, _same(50),
        file="cifar10.npz", optimizer="adam", lr=1e-3, decay=0.0,
    ),
    Source("mnist", "MNIST", "shokri-location", _same(1000), _same(50), file="mnist.npz"),
    Source(
        "hospital", "Diabetic Hospital", "shokri-hospital", {"quick": 2000, "full": 10_000},
        {"quick": 100, "full": 1000}, wide=False, file="diabetic_data.csv",
    ),
    Source(
        "adult", "Adult", "shokri-adult", {"quick": 2000, "full": 10_000}, _same(50), wide=False
    ),
)  # fmt: skip
STAND_IN = Source(
    "synthetic", "Made-up records", "shokri-location", _same(1000), _same(50),
    options={"n": 4000, "features": 400, "classes": 30},
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Target:
    """A network at the end of some epoch, with its members and as many others.

    level: the gap it was stopped at, None for the last epoch. records (n,), in canonical order.
    seed: for what else is drawn for it.
    """

    source: Source
    seed: int
    level: float | None
    epoch: int
    model: Model
    records: Records
    membership: Bools

    @property
    def folds(self) -> Folds:
        """Who teaches an attack, and who chooses its threshold."""
        return Folds.draw(self.records.blocks(), self.membership, self.seed)

    @property
    def accuracies(self) -> tuple[float, float]:
        """The shares of members and of others that it predicts right."""
        right = self.model.predict(self.records.X) == self.records.y
        return float(right[self.membership].mean()), float(right[~self.membership].mean())


@dataclass(frozen=True, eq=False)
class Pool:
    """A data set with its records."""

    source: Source
    records: Records


def pools(setting: Setting, *, wide: bool = False) -> tuple[list[Pool], list[str]]:
    """The data sets that are there, and a sentence for each that is not.

    wide: those with many features only. Where no such is there, made-up records stand in.
    """
    setting.progress("reading the data sets", 0, 0)
    found, missing = list[Pool](), list[str]()
    for source in SOURCES:
        if wide and not source.wide:
            continue
        try:
            found.append(Pool(source, source.load(setting)))
        except MissingDataError:
            missing.append(
                f"{source.title} is left out: {source.file} is not in the data folder; name the "
                "folder that has it with --data."
            )
    if not any(one.source.wide for one in found):
        found.insert(0, Pool(STAND_IN, STAND_IN.load(setting)))
        missing.append("Made-up records stand in for the data sets with many features.")
    return found, missing


def first_wide(setting: Setting) -> tuple[Pool, list[str]]:
    """The first data set with many features that is there, where the paper has Purchase."""
    setting.progress("reading the data sets", 0, 0)
    for source in (source for source in SOURCES if source.wide):
        try:
            pool = Pool(source, source.load(setting))
        except MissingDataError:
            continue
        break
    else:
        pool = Pool(STAND_IN, STAND_IN.load(setting))
    if pool.source.name == "purchase100":
        return pool, []
    return pool, [
        f"{pool.source.title} stands in for Purchase: purchase100.npz is not in the data folder; "
        "name the folder that has it with --data."
    ]


def repetitions(setting: Setting) -> int:
    """How many networks are trained of each data set."""
    return SEEDS[setting.scale] if setting.seeds is None else setting.seeds


def targets_of(found: Sequence[Pool], setting: Setting, *, levels: bool = True) -> list[Target]:
    """The networks of these data sets, stopped at each gap they reach, and after the last epoch.

    levels: whether at the gaps too, or after the last epoch only.
    """
    stops = LEVELS[setting.scale] if levels else ()
    tasks = []
    for one in found:
        for seed in range(setting.seed, setting.seed + repetitions(setting)):
            drawn = draw(one.records, one.source.members[setting.scale], seed)
            tasks.append(partial(_train, one.source, setting.scale, seed, stops, *drawn))
    return [target for made in each(tasks, setting, "training targets") for target in made]


def setup_of(found: Sequence[Pool], setting: Setting, **more: Any) -> dict[str, Any]:
    """What all of section 4.3 has in common."""
    return {
        "targets": {
            source.name: {
                "network": source.network,
                "members": source.members[setting.scale],
                "others": source.members[setting.scale],
                "epochs": source.epochs[setting.scale],
                "optimizer": f"{source.optimizer}, rate {source.lr:g}, batches of 32",
            }
            for source in (one.source for one in found)
        },
        "stop": "after the first epoch with this gap between the accuracies in training and on "
        "validation records of their own; the gap of a row is that between members and others",
        "scale": setting.scale,
        "seed": setting.seed,
        "seeds": repetitions(setting),
        **more,
    }


def _train(
    source: Source,
    scale: Scale,
    seed: int,
    levels: Sequence[float],
    records: Records,
    roles: NDArray[np.int8],
) -> list[Target]:
    """One training: a target for each gap that was reached, the last epoch last."""
    from leakscope.networks import network
    from leakscope.recipes.torch import TorchRecipe

    snapshots = _Snapshots(levels)
    recipe = TorchRecipe(
        source.title,
        partial(network, source.network),
        optimizer=source.optimizer,
        lr=source.lr,
        decay=source.decay,
        epochs=source.epochs[scale],
        stop_at_gap=1.0,  # a gap that is never seen: validation is looked at, and nothing stops
        hooks=snapshots.hooks,
    )
    (last,) = recipe.fit_many(records, roles[None], [seed])
    judged = roles != 2
    asked, membership = records.take(np.flatnonzero(judged)), roles[judged] == 1
    order = asked.canonical_order()
    asked, membership = asked.take(order), membership[order]
    return [
        Target(source, seed, level, epoch, model, asked, membership)
        for level, epoch, model in snapshots.models(last)
    ]


def draw(population: Records, members: int, seed: int) -> tuple[Records, NDArray[np.int8]]:
    """Records in random order, nobody twice, with roles: members, others, the rest validation.

    Where there are too few, two fifths are members and two fifths others. Of records that are equal
    or of one person the first is kept.
    """
    drawn = np.random.default_rng(seed).permutation(len(population))[: DRAWN * members]
    records = population.take(drawn)
    _, first = np.unique(records.blocks(), return_index=True)
    records = records.take(np.sort(first))
    members = min(members, 2 * len(records) // 5)
    records = records.take(np.arange(min(len(records), 3 * members)))
    roles = np.full(len(records), 2, dtype=np.int8)
    roles[:members], roles[members : 2 * members] = 1, 0
    return records, roles


class _Snapshots:
    """Copies of a network at the end of the first epochs with gaps of at least some levels."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.waiting = sorted(levels)
        self.taken: list[tuple[float, int, Any]] = []
        self.epoch = 0

    def hooks(self, beginning: Any) -> Any:
        """What the training loop calls."""
        from leakscope.networks.training import Hooks

        return Hooks(on_epoch=self._look)

    def _look(self, module: Any, epoch: int, figures: Any) -> None:
        """Keep a copy under the largest of the levels that are reached for the first time."""
        self.epoch = epoch
        reached = [level for level in self.waiting if figures.gap >= level]
        if reached:
            self.waiting = [level for level in self.waiting if level > reached[-1]]
            self.taken.append((reached[-1], epoch, copy.deepcopy(module)))

    def models(self, last: Any) -> Iterator[tuple[float | None, int, Model]]:
        """The level, epoch and model of each copy, and of the last epoch."""
        from leakscope.models.torch import TorchModel

        for level, epoch, module in self.taken:
            if epoch < self.epoch:
                yield level, epoch, TorchModel(module, last.classes, outputs="logits")
        yield None, self.epoch, last
