"""Errata of Farokhi & Kaafar 2020 that two densities show: numbers 1, 3, 4, 5, 7 and 11.

Each takes its truth from densities alone, by numerical integration.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.integrate import quad
from scipy.special import logsumexp

from leakscope.leakage import (
    advantage_bound,
    classical_sigma,
    gaussian_kl,
    jeffreys,
    max_divergence,
    success_bound,
)
from leakscope.papers.farokhi_errata_row import Erratum
from leakscope.protocols import Floats

# A pair of Gaussians in three dimensions whose covariances differ.
WITH = np.array([0.3, -0.2, 0.5]), np.array([[1, 0.2, 0.1], [0.2, 0.8, -0.1], [0.1, -0.1, 0.5]])
WITHOUT = np.array([0.0, 0.1, 0.2]), np.array([[1.5, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 0.7]])

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)  # of the density exp(−x²/2)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def trace() -> Erratum:
    """1: the trace in the divergence of Gaussians."""
    wide = printed_divergence(np.zeros(1), 4 * np.eye(1), np.zeros(1), np.eye(1))
    return Erratum(
        where="Remark 2 (v1), Remark 3 (v2)",
        quantity="D(N1‖N0) of two Gaussians",
        printed="½[tr(Σ0⁻¹Σ0) − p + dᵀΣ0⁻¹d + ln(|Σ0|/|Σ1|)]",
        right="½[tr(Σ0⁻¹Σ1) − p + dᵀΣ0⁻¹d + ln(|Σ0|/|Σ1|)]",
        example="two Gaussians in three dimensions with different covariances; of N(0, 4) from "
        f"N(0, 1) the printed divergence is negative, {wide:.4f}",
        printed_value=printed_divergence(*WITH, *WITHOUT),
        right_value=float(gaussian_kl(*WITH, *WITHOUT)),
        truth=integrated_divergence(*WITH, *WITHOUT),
    )


def printed_divergence(mean1: Floats, cov1: Floats, mean0: Floats, cov0: Floats) -> float:
    """The divergence as printed, in which tr(Σ0⁻¹Σ0) cancels the dimension."""
    shift = mean0 - mean1
    moved = shift @ np.linalg.solve(cov0, shift)
    return float(moved + np.linalg.slogdet(cov0)[1] - np.linalg.slogdet(cov1)[1]) / 2


def integrated_divergence(mean1: Floats, cov1: Floats, mean0: Floats, cov0: Floats) -> float:
    """E ln(p1/p0) under p1 by Gauss–Hermite quadrature, exact for polynomials as this one."""
    p = len(mean1)
    places = np.array(list(product(NODES, repeat=p)))
    weights = np.prod(list(product(WEIGHTS, repeat=p)), axis=1)
    x = mean1 + places @ np.linalg.cholesky(cov1).T
    return float(weights @ (_log_density(x, mean1, cov1) - _log_density(x, mean0, cov0)))


def _log_density(x: Floats, mean: Floats, cov: Floats) -> Floats:
    centred = x - mean
    distance = (centred * np.linalg.solve(cov, centred.T).T).sum(axis=1)
    return np.asarray(-(distance + np.linalg.slogdet(2 * math.pi * cov)[1]) / 2)


def success() -> Erratum:
    """3: a bound on the total variation, printed for a success probability."""
    rho = float(jeffreys(1, 1, 0, 1))
    truth, _ = quad(lambda x: float(max(_normal(x), _normal(x - 1))) / 2, -12, 13, points=[0.5])
    return Erratum(
        where="Theorem 1 and its proof (v1, v2)",
        quantity="success of the best adversary, members and others equally likely",
        printed="P(Ψ = z) ≤ ½√ρ_KL",
        right="total variation ≤ ½√ρ_KL, so that P(Ψ = z) ≤ ½ + ¼√ρ_KL",
        example=f"N(1, 1) with the record and N(0, 1) without it, ρ_KL = {rho:.4g}; where "
        "ρ_KL = 0 the printed bound is 0, and tossing a coin succeeds half of the time",
        printed_value=math.sqrt(rho) / 2,
        right_value=float(success_bound(advantage_bound(rho))),
        truth=truth,
        relation="at most",
    )


def small_noise() -> Erratum:
    """4: how the leakage falls with the standard deviation of noise."""
    t, rho = 0.1, float(jeffreys(1, 1, 0, 1))
    slope = 1.0  # c_KL, half the Fisher divergence both ways: (ln p1/p0)′ is 1 everywhere
    truth = noisy_leakage(1.0, t)
    return Erratum(
        where="Theorem 4 and its proof (v1, v2)",
        quantity="ρ_KL of the model plus t·w, w standard normal",
        printed="ρ_KL(θ + tw) = ρ_KL(θ) − c·t + O(t²), c > 0",
        right="ρ_KL(θ + tw) = ρ_KL(θ) − c·t² + O(t⁴): de Bruijn's identity is in the variance",
        example=f"N(1, 1) and N(0, 1) with t = {t}, c = {slope:g}; at twice that t the fall is "
        f"{(rho - noisy_leakage(1.0, 2 * t)) / (rho - truth):.2f} times as large",
        printed_value=rho - slope * t,
        right_value=rho - slope * t**2,
        truth=truth,
        tolerance=t**4,
    )


def private_noise() -> Erratum:
    """5: how the leakage falls with the privacy budget."""
    distance, delta = 0.001, 1e-5
    sigmas = [classical_sigma(epsilon, delta, distance) for epsilon in (0.8, 0.4)]
    rho = float(jeffreys(distance, 1, 0, 1))
    falls = [rho - noisy_leakage(distance, sigma) for sigma in sigmas]
    return Erratum(
        where="Corollary 2 (v1, v2), abstract and section 1",
        quantity="by what factor the fall of ρ_KL grows when ε is halved",
        printed="ρ_KL(θ + w) = ρ_KL(θ) − O(√log(1/δ)/ε)",
        right="ρ_KL(θ + w) = ρ_KL(θ) − Θ(log(1/δ)/ε²) while the noise is small; and always "
        "ρ_KL(θ + w) ≤ ε²/(2 ln(1.25/δ))",
        example=f"N({distance}, 1) and N(0, 1) with the noise of Proposition 1 at ε = 0.8 and 0.4, "
        f"δ = {delta:g}, sensitivity {distance}: deviations {sigmas[0]:.4f} and {sigmas[1]:.4f}",
        printed_value=sigmas[1] / sigmas[0],
        right_value=(sigmas[1] / sigmas[0]) ** 2,
        truth=falls[1] / falls[0],
        tolerance=1e-3,
    )


def noisy_leakage(distance: float, deviation: float) -> float:
    """ρ_KL of N(distance, 1) and N(0, 1) with noise, from densities convolved numerically."""
    x = np.linspace(-12, 12 + distance, 4001)
    one, other = (
        _normal(x[:, None] - mean - deviation * NODES) @ WEIGHTS for mean in (distance, 0.0)
    )
    return float(np.trapezoid((one - other) * np.log(one / other), x))


def differential_entropy() -> Erratum:
    """7: mutual information bounded by an entropy that may be negative."""
    scale = 0.01
    x = np.linspace(-12, 13, 8001) * scale
    one, other = _normal(x / scale - 1) / scale, _normal(x / scale) / scale
    both = (one + other) / 2
    entropy = -np.trapezoid(both * np.log(both), x)
    told = sum(np.trapezoid(part * np.log(part / both), x) / 2 for part in (one, other))
    return Erratum(
        where="Theorems 2 and 3, proofs (v1)",
        quantity="I(θ; z), members and others equally likely",
        printed="I(θ; z) = h(θ) − h(θ|z) ≤ h(θ), differential entropies",
        right="I(θ; z) = H(z) − H(z|θ) ≤ H(z): h(θ|z) may be negative",
        example=f"N({scale}, {scale}²) and N(0, {scale}²): h(θ) is negative, and in other units "
        f"of θ it is another number ({entropy - math.log(scale):.4f} in units of {scale}) while "
        "I(θ; z) stays; Theorem 3's bound tends to −∞ as λ grows",
        printed_value=float(entropy),
        right_value=math.log(2),
        truth=float(told),
        relation="at most",
    )


def order_of_infinity() -> Erratum:
    """11: which entropy has the order ∞."""
    shares, order = np.array([0.5, 0.25, 0.125, 0.125]), 1e10
    x = np.linspace(-12, 12, 240_001)
    steepest = np.log(_normal((x - 0.5) / 0.5) / 0.5) - np.log(_normal(x))
    return Erratum(
        where="Remark 1 (v2)",
        quantity="Rényi entropy of order ∞",
        printed="max-entropy: the logarithm of how many values are possible",
        right="min-entropy: −ln of the largest probability; between two distributions the "
        "max-divergence, sup ln p1/p0",
        example=f"probabilities ½, ¼, ⅛, ⅛, order {order:g}; the max-divergence of N(½, ¼) from "
        f"N(0, 1) is {float(max_divergence(0.5, 0.25, 0, 1)):.4f}, the largest log-ratio on a "
        f"fine grid {steepest.max():.4f}",
        printed_value=math.log(len(shares)),
        right_value=-math.log(shares.max()),
        truth=float(logsumexp(order * np.log(shares)) / (1 - order)),
    )


def _normal(x: Floats | float) -> Floats:
    return np.exp(-np.square(x) / 2) / math.sqrt(2 * math.pi)
