"""How much a model gives away about who was in its training set, in nats, and what that allows.

Pure functions of arrays. Index 1 is with a record, 0 without; ρ_KL is the sum of both
Kullback–Leibler divergences, ρ_MI the mutual information (Farokhi & Kaafar 2020).
"""

from leakscope.leakage.averaging import GroupLeakage, Leakage, Null
from leakscope.leakage.bounds import (
    Sensitivity,
    advantage_bound,
    advantage_bound_of_information,
    empirical_sensitivity,
    gradient_sensitivity,
    large_sample_leakage,
    logistic_sensitivity,
    mutual_information_bound,
    ridge_sensitivity,
    success_bound,
)
from leakscope.leakage.divergence import knn_divergence
from leakscope.leakage.gain import (
    Gain,
    accuracy_range,
    jensen_shannon,
    optimal_gain,
    output_gain,
)
from leakscope.leakage.gaussian import expected_by_chance, parameter_leakage
from leakscope.leakage.mechanism import (
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from leakscope.leakage.outputs import OutputLeakage, output_leakage
from leakscope.metrics.gaussian import (
    gaussian_kl,
    jeffreys,
    largest_order,
    max_divergence,
    renyi_divergence,
)
from leakscope.metrics.likelihood_ratio import (
    Integral,
    mutual_information,
    total_variation,
    total_variation_integral,
)

__all__ = [
    "Gain",
    "GroupLeakage",
    "Integral",
    "Leakage",
    "Null",
    "OutputLeakage",
    "Sensitivity",
    "accuracy_range",
    "advantage_bound",
    "advantage_bound_of_information",
    "classical_sigma",
    "empirical_sensitivity",
    "expected_by_chance",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_kl",
    "gaussian_sigma",
    "gradient_sensitivity",
    "jeffreys",
    "jensen_shannon",
    "knn_divergence",
    "large_sample_leakage",
    "largest_order",
    "logistic_sensitivity",
    "max_divergence",
    "mutual_information",
    "mutual_information_bound",
    "optimal_gain",
    "output_gain",
    "output_leakage",
    "parameter_leakage",
    "renyi_divergence",
    "ridge_sensitivity",
    "success_bound",
    "total_variation",
    "total_variation_integral",
]
