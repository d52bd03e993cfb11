"""Leakage through the parameters of models that have few, by fitting Gaussians to many draws.

The divergences themselves are in ``leakscope.metrics.gaussian``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.leakage.averaging import Folded, Leakage, check_membership, leakage_of
from leakscope.leakage.bounds import advantage_bound
from leakscope.leakage.divergence import Measured
from leakscope.leakage.plans import Design, Plan
from leakscope.metrics.gaussian import jeffreys
from leakscope.metrics.samples import Codes
from leakscope.protocols import Bools, Floats

# Numbers held at once: 16 MB.
AT_ONCE = 2_000_000

NOTE = (
    "Kullback–Leibler leakage of the parameters, in nats: Gaussians fitted to models with and "
    "without each record, so that it bounds nothing where those are not Gaussian"
)


def parameter_leakage(
    parameters: ArrayLike,
    membership: ArrayLike,
    *,
    groups: Mapping[str, ArrayLike] | None = None,
    unit: ArrayLike | None = None,
    permutations: int = 49,
    confidence: float = 0.95,
    seed: int = 0,
    design: Design | None = None,
) -> Leakage:
    """ρ_KL of each record from the parameters of models trained independently.

    parameters (m, p) of m models, membership (m, n): which records each was trained on. Finite
    samples differ by chance: the expectation of that, ``expected_by_chance``, is subtracted;
    what is then below 0 is shown as 0. Where models are *not* independent, as in complementary
    pairs, chance does something else: given their ``design``, what memberships dealt anew show on
    average is subtracted in its place; without it, the permutation null shows what is left. Models
    that share all records but one must not be used here.
    """
    values = np.asarray(parameters, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
        raise InputError(
            f"Parameters must be finite numbers, (models, parameters), got shape {values.shape}"
        )
    m, p = values.shape
    members = check_membership(membership, m, 1)
    fewest = int(np.minimum(members.sum(axis=0), (~members).sum(axis=0)).min())
    if fewest < (needed := models_needed(p)):
        raise InputError(
            f"There are too many parameters for a Gaussian fit, {p} with only {fewest} models on "
            f"the smaller side of some record, where {needed} are needed: train more models, "
            f"or measure the leakage through outputs"
        )
    whitened = _whitened(values)
    plan = Plan.draw(members, permutations, seed, design)
    folded = Folded.of(
        lambda _start, _stop: whitened, _prepare, members, plan, max(AT_ONCE // (p * p), 1)
    )
    if design is not None:
        folded = folded.less(float(folded.shuffled.mean()))
    chance = "independent models" if design is None else "memberships dealt anew"
    return leakage_of(
        folded,
        measure="parameter_rho_kl",
        note=f"{NOTE}, less what {chance} show by chance.",
        bound=lambda value: float(advantage_bound(value)),
        limits=(0.0, math.inf),
        models=m,
        groups=groups,
        unit=unit,
        confidence=confidence,
    )


def models_needed(p: int) -> int:
    """How many models with a record, and how many without, a Gaussian of p parameters takes."""
    return 4 * (p + 2)


def expected_by_chance(p: int, models: ArrayLike, others: ArrayLike) -> Floats:
    """ρ_KL that samples of one Gaussian show on average when Gaussians are fitted to both.

    For p parameters and M independent draws on either side it is
    [p(p + 1) + 2p(M − 1)/M] / (M − p − 2); exact, with covariances divided by M − 1.
    """
    m1, m0 = (np.asarray(count, dtype=np.float64) for count in (models, others))
    if not (np.minimum(m1, m0) > p + 2).all():
        raise InputError(
            f"The expectation for {p} parameters is finite only with more than {p + 2} models on "
            f"either side, got {models!r} and {others!r}"
        )
    # The mean of an inverse sample covariance is this multiple of the inverse.
    inflated1, inflated0 = ((count - 1) / (count - p - 2) for count in (m1, m0))
    both = (inflated1 + inflated0) / 2
    return np.asarray(p * (both - 1 + (1 / m1 + 1 / m0) * both))[()]


def _whitened(values: Floats) -> Floats:
    """The parameters in coordinates where they are uncorrelated with variance 1: ρ stays the same.

    Moments are then summed without loss, whatever the scale of a parameter.
    """
    centred = values - values.mean(axis=0)
    deviation = centred.std(axis=0)
    basis, singular, _ = np.linalg.svd(
        centred / np.where(deviation > 0, deviation, 1.0), full_matrices=False
    )
    if singular[-1] <= 1e-10 * singular[0]:
        raise InputError(
            f"The {values.shape[1]} parameters of these models depend on each other: leave out "
            f"those that others determine, or that never change"
        )
    return np.asarray(basis * math.sqrt(len(values)))


def _prepare(parameters: Floats, _folds: Codes) -> Measured:
    """ρ_KL less its expectation by chance, (c,), as a function of membership (m, c)."""
    m, p = parameters.shape
    products = (parameters[:, :, None] * parameters[:, None, :]).reshape(m, p * p)

    def fit(side: Bools) -> tuple[Floats, Floats, Floats]:
        weight = side.T.astype(np.float64)
        count = weight.sum(axis=1)
        mean = weight @ parameters / count[:, None]
        second = (weight @ products).reshape(-1, p, p) / count[:, None, None]
        covariance = second - mean[:, :, None] * mean[:, None, :]
        return count, mean, covariance * (count / (count - 1))[:, None, None]

    def measure(membership: Bools) -> Floats:
        count1, mean1, cov1 = fit(membership)
        count0, mean0, cov0 = fit(~membership)
        return jeffreys(mean1, cov1, mean0, cov0) - expected_by_chance(p, count1, count0)

    return measure
