"""What the likelihood ratio of two Gaussians tells: total variation and mutual information.

Both are means of a function of one number, ℓ = ln p1/p0, in any dimension. With

    h(t) = ∫ p1^{½+it} p0^{½−it} dx,

which for Gaussians is a product over the components of the diagonalized pair, Parseval's identity
makes of them integrals over one variable (as Imhof 1961 does for quadratic forms, but halfway
between the two distributions, where |h| ≤ 1; λ = ln(a/(1−a)) for a prior a):

    total variation       (1/π) ∫₀^∞ Re(1 − h(t)) / (t² + ¼) dt
    mutual information    √(a(1−a)) ∫₀^∞ Re(e^{itλ}(1 − h(t))) / ((t² + ¼) cosh πt) dt

The integrands are analytic, so that the trapezoidal rule converges exponentially, and 1 − h is
computed without cancellation, so that small leakages keep their digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, ndtr

from leakscope.errors import InputError
from leakscope.metrics.gaussian import EPS, Pair, as_given, diagonalize, log_spread
from leakscope.options import share
from leakscope.protocols import Floats

Complexes = NDArray[np.complex128]

# The trapezoidal rule for the total variation, in u with t = ½ sinh u: 1/cosh u is below 1e-17 at
# the end. The paths are turned from the real axis by these angles, towards where h decays.
STEP = 1 / 12
END = 40.0
ANGLES = (0.35, 0.15, 0.0, 0.6)
HALVINGS = 4
ENOUGH = 1e-12
ACCURACY = 1e-9

# The end of the integral for mutual information: 1/cosh(πt) is below 1e-17 there.
END_OF_INFORMATION = 13.0

# Complex numbers held at once: 16 MB.
AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class Integral:
    """Integrals (…) with a bound on the absolute error of each, or an estimate of it."""

    value: Floats
    error: Floats


def total_variation(mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike) -> Floats:
    """The advantage of the best adversary there is, ½∫|p1 − p0|, a number for each pair (…).

    In one dimension in closed form; above, to an absolute error below 1e-9, or an error is raised
    (``total_variation_integral`` says how small it is).
    """
    found = total_variation_integral(mean1, cov1, mean0, cov0)
    worst = float(np.max(found.error, initial=0.0))
    if not worst <= ACCURACY:
        raise InputError(
            f"The total variation of these Gaussians is known only to within {worst:.1g}: use "
            f"total_variation_integral, which returns the error beside the value"
        )
    return found.value


def total_variation_integral(
    mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike
) -> Integral:
    """The total variation with its error: rounding in one dimension, an estimate above.

    The estimate is the difference to the same sum over every other point, of which the error is
    about the square root: it is cautious. Steps are halved until it is below 1e-12.
    """
    pair = diagonalize(mean1, cov1, mean0, cov0)
    shape, p = pair.shift.shape[:-1], pair.shift.shape[-1]
    if p == 1:
        value = _one_dimension(pair)
        return Integral(as_given(value), as_given(np.full(shape, 8 * EPS)))
    parts = _parts(pair, round(2 * END / STEP))
    found = [_integrate_variation(part) for part in parts]
    value, error = (np.concatenate(one).reshape(shape) for one in zip(*found, strict=True))
    return Integral(as_given(np.clip(value, 0.0, 1.0)), as_given(error))


def mutual_information(
    mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike, prior: float = 0.5
) -> Floats:
    """What an observation tells about which Gaussian it is from, in nats, for each pair (…).

    ρ_MI of Farokhi & Kaafar 2020 (Definition 1) where N1 has the ``prior`` n/N; at most the
    entropy of the prior. The absolute error is below 1e-13 in any dimension: the sum repeats the
    integrand's transform at distances where it is below e⁻⁷⁵, and stops where it is below 1e-17.
    """
    share("prior", prior)
    pair = diagonalize(mean1, cov1, mean0, cov0)
    shape = pair.shift.shape[:-1]
    odds = math.log(prior) - math.log1p(-prior)
    step = math.pi / (75 + abs(odds) / 2)
    t = np.arange(0.0, END_OF_INFORMATION, step)
    weight = np.exp(1j * t * odds) / ((np.square(t) + 0.25) * np.cosh(math.pi * t))
    weight[0] /= 2
    sums = [(-np.expm1(_log_h(t, part)) @ weight).real for part in _parts(pair, len(t))]
    value = math.sqrt(prior * (1 - prior)) * step * np.concatenate(sums).reshape(shape)
    most = float(entr(prior) + entr(1 - prior))
    return as_given(np.clip(value, 0.0, most))


def _one_dimension(pair: Pair) -> Floats:
    """The total variation (…) of N(d, s) and N(0, 1), from the points where the densities cross.

    Those are the roots of ½(s − 1)x² + dx − ½(d² + s ln s), taken so that nothing cancels; where
    the variances are equal, one of them is infinitely far.
    """
    shift, spread, excess = pair.shift[..., 0], pair.spread[..., 0], pair.excess[..., 0]
    shift = np.abs(shift)  # mirrored, nothing changes
    logarithm = log_spread(pair)[..., 0]
    root = np.sqrt(spread * (np.square(shift) + excess * logarithm))
    near = -(shift + root) / 2
    same = near == 0
    near = np.where(same, -1.0, near)
    level = excess == 0
    crossing = -(np.square(shift) + spread * logarithm) / 2 / near
    far = np.where(level, -np.inf, near / np.where(level, 1.0, excess / 2))
    own = np.sqrt(spread)
    values = [
        (ndtr((point - shift) / own) - ndtr(point)) * np.where(np.isfinite(point), 1.0, 0.0)
        for point in (crossing, far)
    ]
    return np.where(same, 0.0, np.abs(values[0] - values[1]))


def _parts(pair: Pair, points: int) -> list[Pair]:
    """The pairs as one list (k, p), in parts of which each fits into memory at so many points."""
    p = pair.shift.shape[-1]
    flat = [one.reshape(-1, p) for one in (pair.shift, pair.spread, pair.excess)]
    size = max(AT_ONCE // (points * p), 1)
    starts = range(0, max(len(flat[0]), 1), size)
    return [Pair(*(one[start : start + size] for one in flat)) for start in starts]


def _log_h(t: Complexes | Floats, pair: Pair) -> Complexes:
    """ln h(t) for the points t (k, points) or (points,) and pairs (k, p): (k, points).

    The principal branches are the right ones: no factor crosses the negative axis where Re t ≥ 0.
    """
    exponent = 0.5 + 1j * np.atleast_2d(t)
    total = np.zeros((len(pair.shift), exponent.shape[-1]), dtype=np.complex128)
    for shift, excess, logarithm in zip(
        pair.shift.T, pair.excess.T, log_spread(pair).T, strict=True
    ):
        rest = (1 - exponent) * excess[:, None]  # the mixed variance, less 1
        total += (1 - exponent) * logarithm[:, None] - _log1p(rest)
        total -= exponent * (1 - exponent) * np.square(shift)[:, None] / (1 + rest)
    return total / 2


def _log1p(z: Complexes) -> Complexes:
    """ln(1 + z), exact for small z too."""
    real = np.log1p(z.real * (2 + z.real) + np.square(z.imag)) / 2
    return np.asarray(real + 1j * np.arctan2(z.imag, 1 + z.real))


def _integrate_variation(pair: Pair) -> tuple[Floats, Floats]:
    """The total variation and its estimated error, (k,) each, of pairs (k, p).

    Far out h turns around 0 like e^{itc}, c the extreme value of ℓ, and decays where c·Im t > 0.
    A path turned that way too far first meets a rise, so that other angles are tried until
    two sums agree. All of them pass between the poles at ±i/2.
    """
    level = pair.excess == 0
    extreme = np.where(level, 0.0, np.square(pair.shift) / np.where(level, 1.0, -pair.excess))
    side = np.where((extreme - log_spread(pair)).sum(axis=-1) < 0, -1.0, 1.0)
    value, error = np.zeros(len(side)), np.full(len(side), np.inf)
    for halving, angle in product(range(HALVINGS + 1), ANGLES):
        left = np.flatnonzero(error > ENOUGH)
        if not len(left):
            break
        some = Pair(pair.shift[left], pair.spread[left], pair.excess[left])
        sums, difference = _along(some, angle * side[left], STEP / 2 ** (halving + 1))
        better = difference < error[left]
        value[left[better]], error[left[better]] = sums[better], difference[better]
    return value, error + 8 * EPS


def _along(pair: Pair, angle: Floats, step: float) -> tuple[Floats, Floats]:
    """The sum (k,) along paths turned by the angles (k,), and its difference to double steps."""
    u = np.arange(0.0, END, step) + 1j * angle[:, None]
    # A path on which h rises beyond all numbers is no path: its sum is NaN and never taken.
    with np.errstate(over="ignore", invalid="ignore"):
        terms = (-np.expm1(_log_h(np.sinh(u) / 2, pair)) / np.cosh(u)).real
        terms[:, 0] /= 2
        fine = 2 / math.pi * step * terms.sum(axis=1)
        coarse = 4 / math.pi * step * terms[:, ::2].sum(axis=1)
        return fine, np.abs(fine - coarse)
