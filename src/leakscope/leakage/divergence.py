"""How much one record's observations differ with and without it in the training set.

Estimators from samples, for many records at once: observations (m, c, w) are what m models show of
c records, membership (m, c) says which were trained on them. Each is prepared once for the
observations and then asked for as many memberships as a null distribution needs. None assumes a
shape of the distributions in order to be valid: a wrong shape costs nats and invents none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from leakscope.errors import InputError
from leakscope.leakage.neighbours import mean_where, wider_anywhere, wider_in_line
from leakscope.metrics.samples import Codes
from leakscope.protocols import Bools, Floats

# A number per record (c,) from a membership (m, c).
Measured = Callable[[Bools], Floats]

# Ties are broken by noise of this size, in standard deviations of a record's observations.
JITTER = 1e-9

# Variances are never taken for less than this share of a record's variance over all models.
FLOOR = 1e-9


def knn_divergence(
    samples: ArrayLike, others: ArrayLike, neighbours: int = 5, seed: int = 0
) -> float:
    """The Kullback–Leibler divergence of one sample (k, w) from another (l, w), in nats.

    From distances to the nearest neighbours in either sample, without densities (Wang, Kulkarni &
    Verdú 2009, equation 5). It may be negative by chance. Columns are scaled alike in both, and
    ties broken by noise a billionth of the spread.
    """
    try:
        one, other = (np.asarray(values, dtype=np.float64) for values in (samples, others))
    except (TypeError, ValueError) as error:
        raise InputError(f"The samples must be arrays of numbers: {error}") from error
    one, other = (values[:, None] if values.ndim == 1 else values for values in (one, other))
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        raise InputError(
            f"Two samples must have the same columns, got shapes {one.shape} and {other.shape}"
        )
    if not 1 <= neighbours < min(len(one), len(other)):
        raise InputError(
            f"The number of neighbours must be from 1 to one less than the smaller sample, which "
            f"has {min(len(one), len(other))}, got {neighbours!r}"
        )
    both = np.concatenate([one, other])[:, None]
    first = np.arange(len(both))[:, None] < len(one)
    return float(_nearest(both, neighbours, seed)(first)[0, 0])


def prepare_divergence(observations: Floats, neighbours: int, seed: int) -> Measured:
    """The nearest-neighbour estimate of ρ_KL at the outputs, both directions summed, (c,).

    Distances do not depend on membership, so that all memberships share one sorting of them.
    """
    directed = _nearest(observations, neighbours, seed)
    return lambda membership: directed(membership).sum(axis=0)


def prepare_information(observations: Floats, folds: Codes) -> Measured:
    """The mutual information with membership at equal priors, from below, (c,) of at most ln 2.

    For any q, E ln q(member | seen) + ln 2 is at most the mutual information. Here q follows by
    Bayes' rule from Student's predictive densities of the models with and without the record, or
    by counting where one number is seen and models tie, and is judged only on folds (m,) of models
    it was not learned from. So the estimate errs downwards
    on average, by about the number of moments over twice the number of models, and below 0 where
    there is nothing to find; plugging fitted Gaussians into a formula errs upwards instead.
    """
    scaled, constant = _scaled(observations)
    across = (_ratio_in_line if scaled.shape[2] == 1 else _ratio_across)(scaled, folds)

    def measure(membership: Bools) -> Floats:
        ratio = across(membership)
        gained = math.log(2) - np.logaddexp(0.0, np.where(membership, -ratio, ratio))
        sides = [mean_where(gained, side) for side in (membership, ~membership)]
        return np.where(constant, 0.0, (sides[0] + sides[1]) / 2)

    return measure


def prepare_advantage(observations: Floats, folds: Codes) -> Measured:
    """TPR − FPR of a rule learned on half of the models and judged on the other half, (c,).

    Both ways, averaged; signed, so that it is 0 on average where there is nothing to learn. The
    rule is a threshold with its direction where one number is seen, and otherwise the sign of the
    log-likelihood ratio of ``log_ratio``.
    """
    scaled, _ = _scaled(observations)
    rule = _by_threshold if scaled.shape[2] == 1 else _by_ratio
    half = folds % 2 == 0

    def measure(membership: Bools) -> Floats:
        total = np.zeros(membership.shape[1])
        for learned in (half, ~half):
            asked = membership[~learned]
            called = rule(scaled[learned], membership[learned], scaled[~learned])
            total += mean_where(called, asked) - mean_where(called, ~asked)
        return total / 2

    return measure


def log_ratio(known: Floats, membership: Bools, asked: Floats) -> Floats:
    """ln p(seen | member) − ln p(seen | not) of what other models show, (a, c), from known ones.

    Student's predictive density of a Gaussian of unknown mean and covariance, which allows for how
    few models (m, c, w) it is learned from; each side's covariance is drawn towards the common one
    with the weight of w + 1 models. 0 where a side is not known at all.
    """
    counts, means, scatters = zip(
        *(_moments(known, side) for side in (membership, ~membership)), strict=True
    )
    w = known.shape[2]
    common = (scatters[0] + scatters[1]) / np.maximum(sum(counts) - 2, 1)[:, None, None]
    prior = (w + 1) * (common + FLOOR * np.eye(w))
    logs = [
        _student(asked, count, mean, scatter + prior)
        for count, mean, scatter in zip(counts, means, scatters, strict=True)
    ]
    known_both = (counts[0] > 0) & (counts[1] > 0)
    return np.where(known_both, logs[0] - logs[1], 0.0)


def _ratio_across(scaled: Floats, folds: Codes) -> Measured:
    """The ``log_ratio`` of every model (m, c), from the models of the other folds (m,)."""

    def measure(membership: Bools) -> Floats:
        ratio = np.empty(membership.shape)
        for fold in np.unique(folds):
            out = folds == fold
            ratio[out] = log_ratio(scaled[~out], membership[~out], scaled[out])
        return ratio

    return measure


def _ratio_in_line(scaled: Floats, folds: Codes) -> Measured:
    """The same where one number is seen, from sums over folds: what is left out is subtracted.

    The numbers have mean 0 and variance 1 over models, and variances their floor, so that
    subtracting sums of squares loses nothing.
    """
    seen = scaled[..., 0]
    groups, fold = np.unique(folds, return_inverse=True)
    pick = (groups[:, None] == folds).astype(np.float64)
    powers = (np.ones_like(seen), seen, np.square(seen))
    everyone = [_all_but(pick @ power) for power in powers]
    freedom = np.maximum(np.arange(len(seen) + 1), 1) + 1.0
    constants = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(freedom) / 2
    counted = _ratio_of_ties(seen, fold)

    def measure(membership: Bools) -> Floats:
        weight = membership.astype(np.float64)
        inside = [_all_but(pick @ (weight * power)) for power in powers]
        sides = [inside, [total - part for total, part in zip(everyone, inside, strict=True)]]
        counts = [np.maximum(side[0], 1) for side in sides]
        means = [side[1] / count for side, count in zip(sides, counts, strict=True)]
        scatters = [
            np.maximum(side[2] - side[1] * mean, 0) for side, mean in zip(sides, means, strict=True)
        ]
        common = (scatters[0] + scatters[1]) / np.maximum(everyone[0] - 2, 1)
        logs = []
        for count, mean, scatter in zip(counts, means, scatters, strict=True):
            spread = (scatter + 2 * (common + FLOOR)) * (1 + 1 / count)
            constant = constants[count.astype(np.intp)] - np.log(spread / (count + 1)) / 2
            away = np.square(seen - mean[fold]) * (1 / spread)[fold]
            logs.append(constant[fold] - (count / 2 + 1)[fold] * np.log1p(away))
        known_both = np.minimum(sides[0][0], sides[1][0]) > 0
        ratio = counted(membership, logs[0] - logs[1], [side[0] for side in sides])
        return np.where(known_both[fold], ratio, 0.0)

    return measure


def _ratio_of_ties(
    seen: Floats, fold: Codes
) -> Callable[[Bools, Floats, Sequence[Floats]], Floats]:
    """The log-ratios (m, c) by counting, where models show exactly what others do.

    A tree or a vote shows few different numbers, of which no density is known, but their shares
    are: (k + ½)/(n + 1) of n models (Krichevsky & Trofimov 1981). Counted is what at least two
    other models show and, of a record of which m models show m/8 numbers at most, all of it.
    """
    m, folds = len(seen), int(fold.max()) + 1
    order = np.argsort(seen, axis=0)
    rises = np.diff(np.take_along_axis(seen, order, axis=0), axis=0) > 0
    group = np.zeros(seen.shape, dtype=np.intp)
    np.put_along_axis(group, order[1:], np.cumsum(rises, axis=0), axis=0)
    tied = np.zeros(seen.shape, dtype=np.bool_)
    np.put_along_axis(tied, order[1:], ~rises, axis=0)
    columns = np.flatnonzero(tied.any(axis=0))
    mostly = 8 * np.count_nonzero(tied[:, columns], axis=0) >= 7 * m
    alike = group[:, columns] + m * np.arange(len(columns))
    within = alike * folds + fold[:, None]

    def measure(membership: Bools, ratio: Floats, known: Sequence[Floats]) -> Floats:
        logs, total = [], np.zeros(alike.shape)
        for side, models in zip((membership, ~membership), known, strict=True):
            weight = np.ravel(side[:, columns]).astype(np.float64)
            # As many as show the same, less those of the model's own fold.
            count = np.bincount(np.ravel(alike), weight)[alike]
            count -= np.bincount(np.ravel(within), weight)[within]
            logs.append(np.log((count + 0.5) / (models[:, columns][fold] + 1)))
            total += count
        ratio[:, columns] = np.where((total > 1) | mostly, logs[0] - logs[1], ratio[:, columns])
        return ratio

    return measure


def _all_but(parts: Floats) -> Floats:
    """The sum of all folds (f, c) but each."""
    return np.asarray(parts.sum(axis=0) - parts)


def _moments(known: Floats, side: Bools) -> tuple[Floats, Floats, Floats]:
    """How many models (c,), their mean (c, w) and their scatter around it (c, w, w)."""
    count = np.count_nonzero(side, axis=0).astype(np.float64)
    inside = np.where(side[..., None], known, 0.0)
    mean = inside.sum(axis=0) / np.maximum(count, 1)[:, None]
    centred = np.where(side[..., None], known - mean, 0.0).transpose(1, 2, 0)
    return count, mean, centred @ centred.transpose(0, 2, 1)


def _student(asked: Floats, count: Floats, mean: Floats, scatter: Floats) -> Floats:
    """The log of the predictive density (a, c), but for what both sides have in common."""
    w = mean.shape[1]
    freedom = np.maximum(count, 1) + 1  # count − 1 of the models, w + 1 of the prior, less w − 1
    scale = scatter * ((1 + 1 / np.maximum(count, 1)) / freedom)[:, None, None]
    centred = (asked - mean).transpose(1, 2, 0)
    distance = (centred * np.linalg.solve(scale, centred)).sum(axis=1)
    volume = np.linalg.slogdet(scale)[1] / 2 + np.log(freedom) * w / 2
    constant = gammaln((freedom + w) / 2) - gammaln(freedom / 2) - volume
    tail = (freedom + w)[:, None] / 2 * np.log1p(distance / freedom[:, None])
    return np.asarray((constant[:, None] - tail).T)


def _by_ratio(known: Floats, membership: Bools, asked: Floats) -> Floats:
    """1 where a member is more likely, (a, c)."""
    return np.asarray(log_ratio(known, membership, asked) > 0, dtype=np.float64)


def _by_threshold(known: Floats, membership: Bools, asked: Floats) -> Floats:
    """1 on the members' side of the threshold that parts the known models best, (a, c)."""
    order = np.argsort(known[..., 0], axis=0, kind="stable")
    values = np.take_along_axis(known[..., 0], order, axis=0)
    sides = np.take_along_axis(membership, order, axis=0)
    members, others = (np.count_nonzero(side, axis=0) for side in (sides, ~sides))
    # TPR − FPR of what is below, in whole numbers: what ties must tie.
    below = np.cumsum(np.where(sides, others, -members), axis=0)[:-1]
    # Models that show the same cannot be parted.
    below = np.where(values[:-1] < values[1:], below, 0)
    best = np.argmax(np.abs(below), axis=0)[None]
    cut = (np.take_along_axis(values[:-1], best, 0) + np.take_along_axis(values[1:], best, 0)) / 2
    gain = np.take_along_axis(below, best, axis=0)
    called = ((asked[..., 0] < cut) == (gain > 0)) & (gain != 0)
    return np.asarray(called, dtype=np.float64)


def _nearest(observations: Floats, neighbours: int, seed: int) -> Callable[[Bools], Floats]:
    """Both directed divergences (2, c), first that of members from non-members."""
    scaled, _ = _scaled(observations)
    noise = np.random.default_rng(seed).uniform(-JITTER, JITTER, scaled.shape)
    points = scaled + noise
    wider = (wider_in_line if points.shape[2] == 1 else wider_anywhere)(points)

    def measure(membership: Bools) -> Floats:
        counts = np.stack([np.count_nonzero(side, axis=0) for side in (membership, ~membership)])
        least = counts.min(axis=0)
        means = np.stack(wider(membership, np.clip(least - 1, 1, neighbours)))
        found = means + np.log(np.maximum(counts[::-1], 1) / np.maximum(counts - 1, 1))
        # Nothing can be told of a side with one model at most.
        return np.where(least > 1, found, 0.0)

    return measure


def _scaled(observations: Floats) -> tuple[Floats, Bools]:
    """Observations less their mean over models, by their deviation; and which are constant (c,)."""
    centred = observations - observations.mean(axis=0)
    spread = np.abs(centred).max(axis=0)
    # Rounding of a constant is not a spread.
    flat = spread <= 1e-12 * np.abs(observations).max(axis=0)
    deviation = np.sqrt(np.square(centred / np.where(flat, 1.0, spread)).mean(axis=0))
    scale = np.where(flat, 1.0, spread * np.where(flat, 1.0, deviation))
    return np.where(flat, 0.0, centred / scale), flat.all(axis=1)
