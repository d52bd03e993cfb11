"""One point of a figure of Farokhi & Kaafar (2020): what a ridge regression leaks on Adult.

Their section 6.1: 48,842 adults, categories as integers, principal components. Two things are
measured at each point: the leakage of the parameters, by Monte Carlo with and without a record
(remark 3), and the advantage of the adversary of Yeom et al. (2018, section 6.2) in the membership
experiment, over models trained again and again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from leakscope.datasets import load_dataset
from leakscope.exact import RidgeLeakage, ridge_leakage
from leakscope.exact.bases import solve
from leakscope.exact.moments import Release
from leakscope.leakage import large_sample_leakage
from leakscope.metrics.intervals import tail_of
from leakscope.papers.experiment import Scale, Setting
from leakscope.protocols import Floats, Indices

COMPONENTS = 14  # as many as Adult has columns

_BLOCK = 2**21  # numbers gathered from the features at a time, 16 MB


@dataclass(frozen=True)
class Size:
    """How much is computed: records asked about (None: all), training sets drawn, models attacked.

    draws are those of the Monte Carlo with and without a record; models those of the membership
    experiment.
    """

    records: int | None
    draws: int
    models: int


SIZES: dict[Scale, Size] = {"quick": Size(2000, 1000, 500), "full": Size(None, 4000, 2000)}


@dataclass(frozen=True)
class Case:
    """One ridge regression: n members, so many components, λ, and how it is released."""

    n: int
    features: int = 5
    l2: float = 0.0
    sigma: float = 0.0
    grid: float | None = None


@dataclass(frozen=True, eq=False)
class Adults:
    """The population: X (N, 14), y (N,) of 0 and 1, and which records are asked about."""

    X: Floats
    y: Floats
    asked: Indices

    @classmethod
    def load(cls, setting: Setting) -> Adults:
        """Adult as principal components, and the records that the scale asks about."""
        records = load_dataset("adult", encoding="pca", components=COMPONENTS, folder=setting.data)
        wanted, total = SIZES[setting.scale].records, len(records)
        asked = np.arange(total)
        if wanted is not None and wanted < total:
            chosen = _streams(setting.seed)[0].choice(total, wanted, replace=False)
            asked = np.sort(chosen).astype(np.intp)
        return cls(np.asarray(records.X, dtype=np.float64), records.y.astype(np.float64), asked)

    def of(self, features: int) -> Floats:
        """The first components, (N, features)."""
        return np.ascontiguousarray(self.X[:, :features])


@dataclass(frozen=True, eq=False)
class Point:
    """One row of a figure, and the advantages (m,) behind its box."""

    row: Mapping[str, Any]
    advantages: Floats


def repetitions(setting: Setting) -> int:
    """How many times as many training sets as the scale has."""
    return 1 if setting.seeds is None else setting.seeds


def measure(adults: Adults, case: Case, setting: Setting) -> Point:
    """Leakage and advantage of one case; averages over the records that are asked about."""
    found = leakage_of(adults, case, setting)
    advantages = repeated_advantages(adults, case, setting)
    mean = found.population_mean
    row = {
        "rho_kl": mean.value,
        "rho_kl_low": mean.low,
        "rho_kl_high": mean.high,
        "rho_mi": float(found.rho_mi.mean()),
        "rho_mi_balanced": float(found.rho_mi_balanced.mean()),
        "total_variation": float(found.total_variation.mean()),
        "advantage_bound": float(found.advantage_bound.mean()),
        **box(advantages),
        "prior": found.prior,
    }
    return Point(row, advantages)


def leakage_of(adults: Adults, case: Case, setting: Setting) -> RidgeLeakage:
    """The leakage of the parameters with and without each record that is asked about."""
    return ridge_leakage(
        adults.of(case.features),
        adults.y,
        case.n,
        l2=case.l2,
        noise=case.sigma,
        grid=case.grid,
        draws=SIZES[setting.scale].draws * repetitions(setting),
        records=adults.asked,
        seed=setting.seed,
        workers=setting.workers,
    )


def repeated_advantages(adults: Adults, case: Case, setting: Setting) -> Floats:
    """The advantages (m,) over as many trainings as the scale has."""
    models = SIZES[setting.scale].models * repetitions(setting)
    X, rng = adults.of(case.features), _streams(setting.seed)[1]
    return threshold_advantages(X, adults.y, case, models, rng)


def large_sample_mean(adults: Adults, case: Case) -> float:
    """What the mean of ρ_KL tends to for large n, at λ = 0 and without noise."""
    X = adults.of(case.features)
    theta = np.linalg.lstsq(X, adults.y, rcond=None)[0]
    gradients = X * (X @ theta - adults.y)[:, None]
    return float(large_sample_leakage(gradients, case.n)[adults.asked].mean())


def threshold_advantages(
    X: Floats, y: Floats, case: Case, models: int, rng: np.random.Generator
) -> Floats:
    """TPR − FPR (m,) of the threshold adversary against models of random members.

    Each model has n members and is judged on those and on n others. The adversary sees the
    released model and calls a member whoever it fits at least as well, by squared error, as it
    fits its members on average.
    """
    n, release = case.n, Release(case.sigma, case.grid)
    noise = rng.spawn(1)[0]  # apart, so that the same members meet any noise
    block = max(1, _BLOCK // (2 * n * X.shape[1]))
    found = list[Floats]()
    for start in range(0, models, block):
        many = range(start, min(start + block, models))
        chosen = np.stack([rng.choice(len(y), 2 * n, replace=False) for _ in many])
        theta = solve(X[chosen[:, :n]], y[chosen[:, :n]], n * case.l2, n).theta
        theta = release.rounded(theta) + noise.normal(scale=case.sigma, size=theta.shape)
        predicted = (X[chosen] @ theta[:, :, None])[..., 0]
        found.append(advantages_of(np.square(y[chosen] - predicted), n))
    return np.concatenate(found)


def advantages_of(losses: Floats, n: int) -> Floats:
    """TPR − FPR (m,) where losses (m, 2n) at most the mean of the first n, the members, accuse."""
    own = losses[:, :n]
    # A mean is at least the smallest, but for rounding, which must not part records that tie.
    cut = np.maximum(own.mean(axis=1), own.min(axis=1))
    called: NDArray[np.bool_] = losses <= cut[:, None]
    return np.asarray(called[:, :n].mean(axis=1) - called[:, n:].mean(axis=1))


def box(advantages: Floats) -> dict[str, float]:
    """The box of |advantage| over models, as the paper draws it, and the mean with its sign.

    The absolute value has a floor where few records judge a model: it is above 0 on average also
    where nothing leaks. The mean with its sign has not; its interval is Student's over models.
    """
    q1, median, q3 = np.quantile(np.abs(advantages), [0.25, 0.5, 0.75])
    m, mean = len(advantages), float(advantages.mean())
    error = float(advantages.std(ddof=1)) / math.sqrt(m)
    half = -float(stdtrit(m - 1, tail_of(0.95))) * error
    return {
        "advantage_median": float(median),
        "advantage_q1": float(q1),
        "advantage_q3": float(q3),
        "advantage_signed": mean,
        "advantage_signed_low": mean - half,
        "advantage_signed_high": mean + half,
    }


def _streams(seed: int) -> list[np.random.Generator]:
    """Chance for the records asked about and for the membership experiment, apart from draws'."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)]
