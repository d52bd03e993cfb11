"""The Gaussian mechanism of differential privacy: from (ε, δ) to the noise and back.

A release whose parameters move by at most ``sensitivity`` when one record is replaced, plus
Gaussian noise of standard deviation σ on each, is (ε, δ)-differentially private exactly if

    δ ≥ Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),   μ = sensitivity/σ

(Balle & Wang 2018, theorem 8). Everything is solved for ln δ, so that a δ of 1e-300 is as good as
one of 1e-5. Where the answer is beyond the largest number there is, it is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from leakscope.errors import InputError
from leakscope.options import magnitude, one_of, share

# A square beyond which nothing is told apart, and the largest logarithm of a number there is.
FAR, LARGEST = 1e300, 709.0

# Gauss–Legendre points for differences too small to take directly.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def gaussian_sigma(
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    method: Literal["analytic", "classical"] = "analytic",
) -> float:
    """The standard deviation of noise that makes a release (ε, δ)-differentially private.

    ``analytic`` is the smallest that does. ``classical`` is √(2 ln(1.25/δ))·sensitivity/ε (Dwork &
    Roth 2014, theorem A.1), proven for ε < 1 only and refused beyond: at δ = 1e-5 it really fails
    above ε = 8.42.
    """
    magnitude("epsilon", epsilon, above=0)
    magnitude("sensitivity", sensitivity, above=0)
    share("delta", delta)
    one_of("method", method, ["analytic", "classical"])
    if method == "classical":
        if epsilon >= 1:
            raise InputError(
                f"The classical Gaussian mechanism is proven for epsilon below 1 only, got "
                f"{epsilon!r}: use method='analytic'"
            )
        return classical_sigma(epsilon, delta, sensitivity)
    target = math.log(delta)
    # ln δ falls as the noise grows, here as −ln σ falls.
    log_sigma = _root(lambda log: _log_delta(math.exp(-log), epsilon) - target)
    return sensitivity * math.exp(log_sigma)


def classical_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The formula √(2 ln(1.25/δ))·sensitivity/ε as printed, for any ε, also where it is wrong.

    ``gaussian_delta`` of it is the δ that it really gives.
    """
    magnitude("epsilon", epsilon, above=0)
    magnitude("sensitivity", sensitivity, above=0)
    share("delta", delta)
    return math.sqrt(2 * (math.log(1.25) - math.log(delta))) * sensitivity / epsilon


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """The smallest δ for which noise of this standard deviation gives (ε, δ)-privacy."""
    magnitude("sigma", sigma, above=0)
    magnitude("sensitivity", sensitivity, above=0)
    magnitude("epsilon", epsilon)
    return math.exp(_log_delta(sensitivity / sigma, epsilon))


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest ε for which noise of this standard deviation gives (ε, δ)-privacy; maybe 0."""
    magnitude("sigma", sigma, above=0)
    magnitude("sensitivity", sensitivity, above=0)
    share("delta", delta)
    ratio, target = sensitivity / sigma, math.log(delta)
    if _log_delta(ratio, 0.0) <= target:
        return 0.0
    return math.exp(_root(lambda log: _log_delta(ratio, math.exp(log)) - target))


def _log_delta(ratio: float, epsilon: float) -> float:
    """ln δ at sensitivity/σ = ratio.

    With x = ε/μ − μ/2 and Mills' ratio m(x) = Φ(−x)/φ(x) it is ln φ(x) + ln(m(x) − m(x + μ)):
    e^ε drops out, and nothing overflows. Where x is far below 0, Φ(−x) is nearly 1 and nothing
    cancels; far above 0 it is below the logarithm of any number there is.
    """
    if ratio == 0:  # less than any number there is
        return -FAR
    x = epsilon / ratio - ratio / 2
    log_density = -min(x * x, FAR) / 2 - math.log(2 * math.pi) / 2
    if x < -5:
        beyond = math.exp(log_density) * _mills(epsilon / ratio + ratio / 2)
        return math.log(float(ndtr(-x)) - beyond)
    return log_density if x > 1e4 else log_density + _log_fall_of_mills(x, ratio)


def _log_fall_of_mills(x: float, width: float) -> float:
    """ln(m(x) − m(x + width)), by its slope where the difference would lose its digits."""
    if width > 0.5:
        return math.log(_mills(x) - _mills(x + width))
    u = x + width * (NODES + 1) / 2
    inverse = 1 / np.square(np.maximum(u, 100.0))
    # −m′(u) = 1 − u·m(u), far out by its series.
    series = inverse * (1 - inverse * (3 - inverse * (15 - inverse * 105)))
    slope = np.where(u > 100, series, 1 - u * math.sqrt(math.pi / 2) * erfcx(u / math.sqrt(2)))
    return math.log(float(WEIGHTS @ slope) / 2) + math.log(width)


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _root(function: Callable[[float], float]) -> float:
    """Where a falling function of a logarithm crosses 0; infinite where that is at no number."""
    low, high = -1.0, 1.0
    while function(low) < 0:
        if low == -LARGEST:
            return -math.inf
        low = max(2 * low, -LARGEST)
    while function(high) > 0:
        if high == LARGEST:
            return math.inf
        high = min(2 * high, LARGEST)
    return float(brentq(function, low, high, xtol=1e-15, rtol=8.9e-16))
