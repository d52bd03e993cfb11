"""Errata of Farokhi & Kaafar 2020 that a small universe shows: numbers 2, 6, 8, 9 and 10.

A universe of N values, every training set of n of them, and a model that is their mean, shrunk by
1 + λ: ridge regression on the feature 1. The truth is counted over all training sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations, product

import numpy as np
from scipy.special import entr, logsumexp, rel_entr

from leakscope.leakage import jeffreys, total_variation
from leakscope.papers.farokhi_errata_row import Erratum
from leakscope.protocols import Bools, Floats

# No two training sets of one size have the same mean.
POWERS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
NAMED = "the values 1, 2, 4, 8, 16, 32"

# A number from the models of all training sets (s,) and whether a record is in each (s,).
Measure = Callable[[Floats, Bools], float]


def swapped_prior() -> Erratum:
    """2: which share of the records is in the training set."""
    n, grid = 2, 4.0
    sets = training_sets(len(POWERS), n)
    released = rounded(means(POWERS, sets), grid)
    share = n / len(POWERS)
    return Erratum(
        where="section 3, before equation (3) (v1, v2)",
        quantity="ρ_MI by equation (3), averaged over the records",
        printed="α0 = P(z = 0) = n/N, α1 = 1 − n/N",
        right="α1 = P(z = 1) = n/N, α0 = 1 − n/N",
        example=f"means of {n} of {NAMED}, rounded to "
        f"multiples of {grid:g}; a record is in {sets.mean():.4f} of the training sets",
        printed_value=averaged(partial(mixed_information, prior=1 - share), released, sets),
        right_value=averaged(partial(mixed_information, prior=share), released, sets),
        truth=averaged(counted_information, released, sets),
    )


def neighbours() -> Erratum:
    """6: which training sets are neighbours."""
    n = 3
    sets = training_sets(len(POWERS), n)
    models = means(POWERS, sets)
    pairs = list(product(range(len(sets)), repeat=2))
    apart = {(a, b): int((sets[a] != sets[b]).sum()) for a, b in pairs}
    moves = {
        most: max(abs(models[a] - models[b]) for a, b in pairs if apart[a, b] <= most)
        for most in (1, 2)
    }
    different = [sum(0 < count <= most for count in apart.values()) for most in (1, 2)]
    return Erratum(
        where="Definition 3 and Proposition 1 (v1, v2)",
        quantity="Δθ, the largest distance of models from neighbouring training sets",
        printed="neighbours have n members each and differ in at most one index",
        right="they differ in two: one record is replaced by another",
        example=f"means of {n} of {NAMED}: "
        f"{different[0]} pairs of different sets are neighbours as printed, {different[1]} where "
        "one record is replaced; so without any noise the model would have ε = δ = 0",
        printed_value=float(moves[1]),
        right_value=float(POWERS.max() - POWERS.min()) / n,
        truth=float(moves[2]),
    )


def regularization() -> Erratum:
    """8: what regularization does to a model of unlimited precision."""
    n, l2 = 3, 1000.0
    sets = training_sets(len(POWERS), n)
    sampled = [sampling_moments(POWERS, n, record, l2) for record in range(len(POWERS))]
    rounding = ", ".join(
        f"{averaged(counted_information, rounded(means(POWERS, sets, one), 1.0), sets):.4f}"
        for one in (0.0, 1.0, 10.0, 100.0, l2)
    )
    sign = np.sign(means(POWERS - POWERS.mean(), sets, l2))
    return Erratum(
        where="Theorem 3 (v1); section 4 and figure 3 (v1, v2)",
        quantity=f"ρ_KL of the ridge mean at λ = {l2:g}, averaged over the records",
        printed="regularization reduces the leakage, to 0 as λ → ∞",
        right="a divergence has no scale: the ridge mean has the same ρ_KL for every λ; what falls "
        "is the leakage of a rounded or noisy release",
        example=f"means of {n} of {NAMED}, shrunk by 1 + λ; "
        f"rounded to whole numbers, ρ_MI at λ = 0, 1, 10, 100, {l2:g} is {rounding}; released as "
        f"their sign after centring it is {averaged(counted_information, sign, sets):.4f} for "
        "every λ, so Theorem 3 (v2) needs that the limit is in the inside of a cell",
        printed_value=0.0,
        right_value=float(np.mean([jeffreys(*moments) for moments in sampled])),
        truth=averaged(fitted_leakage, means(POWERS, sets, l2), sets),
    )


def growing_sets() -> Erratum:
    """9: whether a larger training set always leaks less."""
    records, ones = 12, 4
    values = (np.arange(records) < ones).astype(np.float64)
    rho = {n: whole_mean_leakage(values, n) for n in (4, 5)}
    theory = {n: drawn_leakage(records, ones, n) for n in (4, 5)}
    certain = ", ".join(f"{entr(n / 6) + entr(1 - n / 6):.4f}" for n in (1, 2, 3))
    return Erratum(
        where="section 4, after Theorem 2 (v1, v2); abstract",
        quantity="ρ_KL with 5 training records over ρ_KL with 4",
        printed="the leakage is a decreasing function of n: at most 1",
        right="Theorem 2 is about the limit; between two sizes the leakage may rise",
        example=f"{ones} ones among {records} zeros and ones, the mean rounded to 0 or 1: ρ_KL is "
        f"{rho[4]:.4f} for n = 4 and {rho[5]:.4f} for n = 5; where every mean is different, ρ_MI "
        f"is the entropy of n/N, {certain} for n = 1, 2, 3 of 6",
        printed_value=1.0,
        right_value=theory[5] / theory[4],
        truth=rho[5] / rho[4],
        relation="at most",
    )


def disjoint_supports() -> Erratum:
    """10: what the Gaussian fit makes of finitely many models."""
    n, noise = 3, 0.05
    sets = training_sets(len(POWERS), n)
    models = means(POWERS, sets)
    fitted = averaged(fitted_leakage, models, sets)
    smoothed = averaged(partial(noisy_leakage, noise=noise), models, sets)
    common = sum((shares(models, chosen).min(axis=0) > 0).sum() for chosen in sets.T)
    return Erratum(
        where="Remark 2 (v1), Remark 3 (v2); universe of section 3",
        quantity="total variation of the models with and without a record, averaged",
        printed="p1 and p0 are approximated by Gaussians, with an error that falls with more draws",
        right="with finitely many records and no noise they have no model in common: total "
        "variation 1, ρ_KL infinite; the Gaussian fit is a smoothing",
        example=f"means of {n} of {NAMED}, of which {common} "
        f"occur both with and without a record; ρ_KL of the Gaussian fit is {fitted:.4f}, and with "
        f"noise of deviation {noise:g} the exact ρ_KL is {smoothed:.1f}",
        printed_value=averaged(fitted_variation, models, sets),
        right_value=1.0,
        truth=averaged(counted_variation, models, sets),
    )


def training_sets(records: int, n: int) -> Bools:
    """All choices of n records, (choices, records)."""
    chosen = np.array(list(combinations(range(records), n)))
    sets = np.zeros((len(chosen), records), dtype=bool)
    np.put_along_axis(sets, chosen, True, axis=1)
    return sets


def means(values: Floats, sets: Bools, l2: float = 0.0) -> Floats:
    """The ridge mean of each training set, (choices,)."""
    return np.asarray((sets @ values) / (sets.sum(axis=1) * (1 + l2)))


def rounded(models: Floats, grid: float) -> Floats:
    """The models as released: the nearest multiples of the grid."""
    return np.asarray(np.rint(models / grid) * grid)


def averaged(measure: Measure, models: Floats, sets: Bools) -> float:
    """A measure of one record's membership, averaged over the records."""
    return float(np.mean([measure(models, chosen) for chosen in sets.T]))


def shares(released: Floats, chosen: Bools) -> Floats:
    """How often each released model occurs with and without a record, (2, models)."""
    place = np.unique(released, return_inverse=True)[1]
    counts = [np.bincount(place[side], minlength=place.max() + 1) for side in (chosen, ~chosen)]
    return np.array([count / count.sum() for count in counts])


def mixed_information(released: Floats, chosen: Bools, prior: float) -> float:
    """ρ_MI by equation (3): the mean divergence from the mixture, P(z = 1) being the prior."""
    one, other = shares(released, chosen)
    mixture = prior * one + (1 - prior) * other
    weighted = prior * rel_entr(one, mixture) + (1 - prior) * rel_entr(other, mixture)
    return float(weighted.sum())


def counted_information(released: Floats, chosen: Bools) -> float:
    """ρ_MI = H(θ) + H(z) − H(θ, z), from counts of training sets alone."""
    place = np.unique(released, return_inverse=True)[1]
    counted = (np.bincount(codes) / len(codes) for codes in (place, chosen, 2 * place + chosen))
    model, membership, both = (float(entr(table).sum()) for table in counted)
    return model + membership - both


def counted_leakage(released: Floats, chosen: Bools) -> float:
    """ρ_KL from counts; infinite where a model tells for certain."""
    one, other = shares(released, chosen)
    return float((rel_entr(one, other) + rel_entr(other, one)).sum())


def counted_variation(released: Floats, chosen: Bools) -> float:
    """The total variation from counts."""
    one, other = shares(released, chosen)
    return float(np.abs(one - other).sum() / 2)


def moments(models: Floats, chosen: Bools) -> tuple[float, float, float, float]:
    """Mean and variance of the models with a record, then without."""
    one, other = models[chosen], models[~chosen]
    return float(one.mean()), float(one.var()), float(other.mean()), float(other.var())


def fitted_leakage(models: Floats, chosen: Bools) -> float:
    """ρ_KL of the Gaussians with these moments."""
    return float(jeffreys(*moments(models, chosen)))


def fitted_variation(models: Floats, chosen: Bools) -> float:
    """The total variation of the same Gaussians."""
    return float(total_variation(*moments(models, chosen)))


def noisy_leakage(models: Floats, chosen: Bools, noise: float) -> float:
    """ρ_KL of the mixtures of Gaussians that noise makes of the models, by the trapezoidal rule."""
    x = np.arange(models.min() - 12 * noise, models.max() + 12 * noise, noise / 20)
    places = (x[:, None] - models) / noise
    one, other = (
        logsumexp(-np.square(places[:, side]) / 2, axis=1) - math.log(side.sum())
        for side in (chosen, ~chosen)
    )
    scale = noise * math.sqrt(2 * math.pi)
    return float(np.trapezoid((np.exp(one) - np.exp(other)) * (one - other), x) / scale)


def sampling_moments(
    values: Floats, n: int, record: int, l2: float
) -> tuple[float, float, float, float]:
    """The moments by the theory of sampling without replacement, no set enumerated."""
    others = np.delete(values, record)
    mean, spread, total = others.mean(), others.var(ddof=1), len(others)
    shrunk = n * (1 + l2)
    return (
        float((values[record] + (n - 1) * mean) / shrunk),
        float((n - 1) * (1 - (n - 1) / total) * spread / shrunk**2),
        float(n * mean / shrunk),
        float(n * (1 - n / total) * spread / shrunk**2),
    )


def whole_mean_leakage(values: Floats, n: int) -> float:
    """ρ_KL of the mean of n values rounded to whole numbers, averaged over the records."""
    sets = training_sets(len(values), n)
    return averaged(counted_leakage, rounded(means(values, sets), 1.0), sets)


def drawn_leakage(records: int, ones: int, n: int) -> float:
    """The same for zeros and ones, by the hypergeometric distribution.

    A mean of exactly ½ is rounded to 0.
    """

    def rounds_up(total: int, among: int, drawn: int, known: int) -> float:
        needed = n // 2 + 1 - known
        ways = [math.comb(among, k) * math.comb(total - among, drawn - k) for k in range(drawn + 1)]
        return sum(ways[needed:]) / sum(ways)

    leakage = 0.0
    for value, share in ((1, ones / records), (0, 1 - ones / records)):
        one = rounds_up(records - 1, ones - value, n - 1, value)
        other = rounds_up(records - 1, ones - value, n, 0)
        leakage += share * (one - other) * math.log(one * (1 - other) / (other * (1 - one)))
    return leakage
