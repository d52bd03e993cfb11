"""What leakage allows at the most: bounds on information, on success, and on what one record moves.

Farokhi & Kaafar 2020 throughout, with the corrections that the errata page demonstrates: their
Theorem 1 bounds the total variation, and so the advantage, not the success.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import entr, expit

from leakscope.errors import InputError
from leakscope.options import magnitude, share, whole_number
from leakscope.protocols import Floats


def mutual_information_bound(rho_kl: ArrayLike, prior: float = 0.5) -> Floats:
    """The most that ρ_MI can be at this ρ_KL: a0·a1·ρ_KL, and never above the prior's entropy.

    The prior is a1 = n/N, the share of records that are members (Corollary 1, which has the
    weaker ρ_KL/4).
    """
    rho = _leakage(rho_kl)
    inside = share("prior", prior)
    most = float(entr(inside) + entr(1 - inside))
    return np.minimum(inside * (1 - inside) * rho, most)[()]


def advantage_bound(rho_kl: ArrayLike) -> Floats:
    """The most that any adversary's advantage can be at this ρ_KL: ½√ρ_KL, at most 1.

    The advantage is TPR − FPR. Pinsker's inequality in both directions bounds the total variation
    (Theorem 1 as corrected); beyond ρ_KL = 4 it says nothing.
    """
    return np.minimum(np.sqrt(_leakage(rho_kl)) / 2, 1.0)[()]


def advantage_bound_of_information(information: ArrayLike) -> Floats:
    """The most that an adversary's advantage can be at this mutual information at equal priors.

    Fano's inequality for two hypotheses, exact in the sense that some pair of distributions
    reaches it: the error e of any adversary has an entropy of at least ln 2 less the information.
    """
    values = _leakage(information)
    least = np.clip(math.log(2) - values, 0.0, None)
    flat = [1 - 2 * _error_of_entropy(float(one)) for one in np.ravel(least)]
    return np.reshape(np.array(flat), least.shape)[()]


def success_bound(advantage: ArrayLike, prior: float = 0.5) -> Floats:
    """The largest chance of a right guess, given a bound on the advantage or the total variation.

    At a prior a of being a member it is max(a, 1−a) + min(a, 1−a)·advantage: ½ + advantage/2
    where both are equally likely. With ``advantage_bound`` it is ½ + ¼√ρ_KL there.
    """
    values = np.asarray(advantage, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"An advantage must be from 0 to 1, got {advantage!r}")
    inside = share("prior", prior)
    return np.asarray(max(inside, 1 - inside) + min(inside, 1 - inside) * values)[()]


def large_sample_leakage(gradients: ArrayLike, n: int) -> Floats:
    """What ρ_KL of each record tends to when many of N records are used for training, (N,).

    gradients (N, p) are those of each record's loss at the fit of all N records, and n the number
    a model is trained on: ρ_i = g_iᵀG⁻¹g_i / (n(1 − n/N)) with G the mean of ggᵀ. The average is
    p / (n(1 − n/N)): it falls like 1/n whatever the loss. A cross-check, not a bound: on the Adult
    data it is within 2 % from n = 1000 on.
    """
    values = np.asarray(gradients, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InputError(
            f"Gradients must be finite numbers, one row per record, got shape {values.shape}"
        )
    total, p = values.shape
    if not 0 < n < total:
        raise InputError(
            f"The number of training records must be from 1 to {total - 1}, one less than there "
            f"are gradients, got {n!r}"
        )
    scale = np.abs(values).max(axis=0)
    basis, triangle = np.linalg.qr(values / np.where(scale > 0, scale, 1.0))
    pivots = np.abs(np.diagonal(triangle))
    if total < p or pivots.min() <= 1e-10 * pivots.max():
        raise InputError(
            f"The gradients of {total} records do not span all {p} parameters: leave out "
            f"parameters that depend on others"
        )
    return np.asarray(total * np.square(basis).sum(axis=1) / (n * (1 - n / total)))


@dataclass(frozen=True)
class Sensitivity:
    """How far replacing one training record can move the parameters, at the most.

    ``value`` is proven: no pair of training sets is further apart. ``attained`` is the distance of
    a pair that exists. Where both are equal, and ``exact`` says so, the value is the smallest
    there is; elsewhere the smallest is between the two.
    """

    value: float
    attained: float

    @property
    def exact(self) -> bool:
        """Whether some pair of training sets is as far apart as the bound says."""
        return math.isclose(self.value, self.attained, rel_tol=1e-12)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "exact": self.exact}


def gradient_sensitivity(
    family: str, radius: float, *, weights: float = math.inf, labels: float = 1.0
) -> float:
    """The sensitivity S of Farokhi & Kaafar (before section 5): the largest gradient of the loss.

    Exact, over all records with ‖x‖ ≤ radius and parameters with ‖θ‖ ≤ weights. Logistic
    regression, ln(1 + e^{−yθᵀx}): radius·σ(radius·weights), so the radius itself over all θ. Ridge
    regression, (y − θᵀx)² with |y| ≤ labels: 2·radius·(radius·weights + labels).
    """
    if weights != math.inf:
        magnitude("weights", weights, above=0)
    magnitude("radius", radius, above=0)
    magnitude("labels", labels, above=0)
    if family == "logistic":
        return radius * float(expit(radius * weights))
    if family == "ridge":
        return 2 * radius * (radius * weights + labels)
    raise InputError(f"The family must be 'ridge' or 'logistic', got {family!r}")


def empirical_sensitivity(parameters: ArrayLike, others: ArrayLike) -> float:
    """How far replacing a record moved the parameters at the most, in pairs of models that exist.

    Both (k, p): row by row two models whose training sets differ in one record. A lower bound on
    the sensitivity, and never a ground for the noise of a private release.
    """
    one, other = (np.asarray(values, dtype=np.float64) for values in (parameters, others))
    if one.shape != other.shape or one.ndim != 2 or len(one) == 0:
        raise InputError(
            f"Pairs of models need two arrays (pairs, parameters) of one shape, got {one.shape} "
            f"and {other.shape}"
        )
    return float(np.linalg.norm(one - other, axis=1).max())


def ridge_sensitivity(n: int, l2: float, radius: float, labels: float) -> Sensitivity:
    """Ridge regression on ‖x‖ ≤ radius and |y| ≤ labels: how far one of n records moves θ.

    θ minimizes the mean of (y − θᵀx)² plus l2·‖θ‖², without intercept. With A the Gram matrix of
    the other n − 1 records plus n·l2 and β their solution, a record moves β by
    A⁻¹x·(y − xᵀβ)/(1 + xᵀA⁻¹x): at most gain·(labels + radius·‖β‖), where both the gain and ‖β‖
    have sharp bounds, and a replacement moves it there and back; nor are two solutions further
    apart than twice the largest there is. Attained: all other records are zero and (x, y) becomes
    (−x, y). Exact for n = 1.
    """
    whole_number("n", n, 1)
    magnitude("l2", l2, above=0)
    magnitude("radius", radius, above=0)
    magnitude("labels", labels, above=0)
    gain = _peak(radius, n * l2)
    norm, largest = (
        math.sqrt(k) * labels * _peak(math.sqrt(k) * radius, n * l2) for k in (n - 1, n)
    )
    moved = gain * (labels + radius * norm)
    return Sensitivity(2 * min(moved, largest), 2 * gain * labels)


def logistic_sensitivity(n: int, l2: float, radius: float) -> Sensitivity:
    """Logistic regression on ‖x‖ ≤ radius: how far replacing one of n records moves θ.

    θ minimizes the mean of ln(1 + e^{−yθᵀx}), y = ±1, plus l2·‖θ‖², without intercept. The
    objective is 2·l2-strongly convex, so that two solutions are at most the difference of the two
    records' gradients over 2·n·l2 apart (Chaudhuri, Monteleoni & Sarwate 2011, lemma 7), each at
    most radius·σ(radius·‖θ‖), where ‖θ‖ has a sharp bound, and at most twice that bound apart.
    Attained: all other records are zero and (x, y) becomes (x, −y). Exact for n = 1, a bound
    beyond, and close where l2 is large.
    """
    whole_number("n", n, 1)
    magnitude("l2", l2, above=0)
    magnitude("radius", radius, above=0)
    largest = _largest_logistic(l2, radius)
    slope = gradient_sensitivity("logistic", radius, weights=largest)
    value = min(slope / (n * l2), 2 * largest)
    return Sensitivity(value, 2 * _largest_logistic(n * l2, radius))


def _largest_logistic(l2: float, radius: float) -> float:
    """The largest ‖θ‖ there is: that of n equal records, as long as the domain or as helps most.

    At the optimum 2·l2·‖θ‖² is the mean of mσ(−m) over the margins m = yθᵀx ≤ radius·‖θ‖.
    """
    # mσ(−m) is largest at m = 1 + W(1/e) and, there, is m − 1.
    best = 1.278464542761074
    free = math.sqrt((best - 1) / (2 * l2))
    return free if radius * free >= best else _single_logistic(l2, radius)


def _single_logistic(l2: float, radius: float) -> float:
    """The ‖θ‖ of one record with ‖x‖ = radius: 2·l2·r = radius·σ(−radius·r)."""
    most = radius / (4 * l2)
    return float(brentq(lambda r: 2 * l2 * r - radius * expit(-radius * r), 0.0, most, xtol=1e-300))


def _peak(radius: float, ridge: float) -> float:
    """The largest u / (u² + ridge) with u ≤ radius."""
    u = min(radius, math.sqrt(ridge))
    return u / (u * u + ridge)


def _error_of_entropy(entropy: float) -> float:
    """The error rate e ≤ ½ at which a guess has this entropy, at most ln 2."""
    if entropy >= math.log(2):
        return 0.5
    return float(brentq(lambda e: entr(e) + entr(1 - e) - entropy, 0.0, 0.5, xtol=1e-16))


def _leakage(values: ArrayLike) -> Floats:
    leakage = np.asarray(values, dtype=np.float64)
    if not (leakage >= 0).all():
        raise InputError(f"A leakage must be 0 or more nats, got {values!r}")
    return leakage
