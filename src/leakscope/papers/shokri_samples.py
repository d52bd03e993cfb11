"""The training sets of Shokri, Strobel & Zick (2021), section 5.1.1, each with all its models.

Logistic regression with an L2 penalty of C = 1 and a free intercept, trained on 2,000 records of
Adult or of the diabetic hospital data, or on 1,800 of Dog vs. Fish, ten times over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from leakscope.channels.oracle import LocalOracle
from leakscope.datasets import load_dataset
from leakscope.errors import InputError, MissingDataError
from leakscope.exact import LeaveOneOut, leave_one_out
from leakscope.metrics.intervals import NONE, Interval, tail_of, wilson
from leakscope.papers.experiment import Scale, Setting
from leakscope.protocols import Floats, Labels

PAPER = "Shokri, Strobel & Zick 2021"

SAMPLES: dict[Scale, int] = {"quick": 3, "full": 10}
RECORDS = 2000
IMAGES = 1800
DOGFISH = "dogfish.npz"

TITLES = {
    "adult": "Adult",
    "hospital": "Diabetic Hospital",
    "dogfish": "Dog vs. Fish",
    "stand-in": "Stand-in for Dog vs. Fish",
}


@dataclass(frozen=True, eq=False)
class Population:
    """Everybody a training set is drawn from: X (N, d), y (N,) of two classes, groups {name: (N,)}.

    records: how many are drawn.
    """

    name: str
    X: Floats
    y: Labels
    records: int
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Sample:
    """One training set: the records it has (n,), and those left (N − n,) in random order.

    seed: for what else is drawn for it.
    """

    population: Population
    rows: NDArray[np.intp]
    others: NDArray[np.intp]
    seed: int = 0
    workers: int | None = None

    @property
    def features(self) -> Floats:
        """The training features, (n, d)."""
        return self.population.X[self.rows]

    @property
    def labels(self) -> Labels:
        """The training labels, (n,)."""
        return self.population.y[self.rows]

    @cached_property
    def models(self) -> LeaveOneOut:
        """The model of all, and those without each record."""
        return leave_one_out(self.features, self.labels, l2=1.0, workers=self.workers)

    def oracle(self, k: int) -> LocalOracle:
        """The model behind queries, each answered with the k records that explain it."""
        return LocalOracle(self._predict, self.models.explain, self.features, self.labels, k=k)

    def _predict(self, queries: Floats) -> Floats:
        return self.models.predict_proba(queries)[:, 1]


def repetitions(setting: Setting) -> int:
    """How many training sets are drawn of each population."""
    return SAMPLES[setting.scale] if setting.seeds is None else setting.seeds


def populations(setting: Setting) -> tuple[list[Population], list[str]]:
    """Adult, and what else is in the data folder; a sentence for each that is not."""
    setting.progress("reading the data sets", 0, 0)
    found, missing = [_adult(setting)], list[str]()
    for load, sentence in (
        (
            _hospital,
            "Diabetic Hospital is left out: diabetic_data.csv is not in the data folder; name the "
            "folder that has it with --data.",
        ),
        (
            _dogfish,
            f"Dog vs. Fish is left out: {DOGFISH}, with features and labels, is not in the data "
            "folder, and made-up records say nothing of photographs.",
        ),
    ):
        try:
            found.append(load(setting))
        except MissingDataError:
            missing.append(sentence)
    return found, missing


def with_others(setting: Setting) -> tuple[list[Population], list[str]]:
    """The populations in which somebody is left that is in no training set, and what is missing."""
    found, missing = populations(setting)
    kept = [one for one in found if one.records < len(one)]
    return kept, missing + [
        f"{TITLES[one.name]} is left out: all its {len(one):,} records are trained on."
        for one in found
        if one.records == len(one)
    ]


def samples(
    population: Population, setting: Setting, records: int | None = None
) -> Iterator[Sample]:
    """The training sets of a population, by the seed; records: how many, if not as usual.

    There is one only where everybody is in it.
    """
    size = records or population.records
    times = 1 if size == len(population) else repetitions(setting)
    if size > len(population):
        raise InputError(
            f"A training set of {size:,} records cannot be drawn of {len(population):,} in "
            f"{population.name}; use a larger data set"
        )
    for at, source in enumerate(np.random.SeedSequence(setting.seed).spawn(times)):
        setting.progress(f"{population.name}, {size:,} records: sample", at, times)
        order = np.random.default_rng(source).permutation(len(population))
        seed = int(source.generate_state(1)[0])
        yield Sample(population, order[:size], order[size:], seed, setting.workers)


def setup_of(setting: Setting, found: Sequence[Population], **more: Any) -> dict[str, Any]:
    """What all of section 5 has in common."""
    return {
        "model": "logistic regression, C = 1, intercept not penalized",
        "explanation": "the k training records of largest |influence|, by exact leave-one-out, of "
        "the loss 1 − P(predicted label)",
        "datasets": {
            one.name: {"population": len(one), "records": one.records, "features": one.X.shape[1]}
            for one in found
        },
        "scale": setting.scale,
        "seed": setting.seed,
        "samples": repetitions(setting),
        **more,
    }


def mean_over(values: Sequence[float]) -> Interval:
    """The mean over samples with Student's interval; without one where there is one sample."""
    numbers = np.asarray(values, dtype=np.float64)
    mean, m = float(numbers.mean()), len(numbers)
    if m < 2:
        return Interval(mean, NONE.low, NONE.high)
    half = _student(m - 1) * float(numbers.std(ddof=1)) / math.sqrt(m)
    return Interval(mean, mean - half, mean + half)


def pooled_share(hits: Sequence[int], sizes: Sequence[int]) -> Interval:
    """The share of all hits among all records of several samples, in percent, with its interval.

    hits, sizes: of each sample. Records of one sample share a model, so that samples and not
    records are independent: Student's interval of the ratio over samples, or Wilson's over records
    where that is wider, as where hardly anybody is hit or there is one sample only.
    """
    h, n = np.asarray(hits, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    alone = wilson(float(h.sum()), float(n.sum()))
    low, high, m = alone.low, alone.high, len(h)
    if m > 1:
        spread = math.sqrt(m / (m - 1) * float(np.square(h - alone.value * n).sum()))
        half = _student(m - 1) * spread / float(n.sum())
        low, high = min(low, alone.value - half), max(high, alone.value + half)
    return Interval(100 * alone.value, 100 * max(low, 0.0), 100 * min(high, 1.0))


def columns(key: str, interval: Interval) -> dict[str, float | None]:
    """The value and the ends under the names key, key_low and key_high."""
    told = interval.to_dict()
    return {key: told["value"], f"{key}_low": told["low"], f"{key}_high": told["high"]}


def against(row: Mapping[str, Any], key: str, printed: float, unit: str = "") -> str:
    """A value of this run beside the paper's: 21.3 % (20.6 to 22.0) against 21 % in print."""
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    ends = "" if low is None else f" ({number(low)} to {number(high)})"
    return f"{number(row[key])}{unit}{ends} against {number(printed)}{unit} in print"


def number(value: float) -> str:
    """A count or a percentage as text: 1,727 and 21.3."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}".removesuffix(".0")
    return text.replace("-", "−")


def _student(degrees: int) -> float:
    return -float(stdtrit(degrees, tail_of(0.95)))


def _adult(setting: Setting) -> Population:
    records = load_dataset("adult", encoding="onehot", folder=setting.data)
    table: Any = load_dataset("adult", encoding="table", folder=setting.data).X
    ages = table["age"].to_numpy() // 10 * 10
    decades = np.array([f"{start}-{start + 10}" for start in ages.tolist()], dtype=object)
    groups = {"age": decades, "race": records.groups["race"], "sex": records.groups["sex"]}
    return Population("adult", np.asarray(records.X), records.y, RECORDS, groups)


def _hospital(setting: Setting) -> Population:
    records = load_dataset("hospital", encoding="onehot", seed=setting.seed, folder=setting.data)
    decades = np.array([age.strip("[)") for age in records.groups["age"]], dtype=object)
    groups = {"age": decades, "race": records.groups["race"], "sex": records.groups["gender"]}
    return Population("hospital", np.asarray(records.X), records.y, RECORDS, groups)


def _dogfish(setting: Setting) -> Population:
    records = load_dataset("features", file=DOGFISH, folder=setting.data)
    X = np.asarray(records.X, dtype=np.float64)
    return Population("dogfish", X, records.y, min(IMAGES, len(X)))
