"""Statistics of membership scores: pure functions of arrays, each figure with an interval.

Scores are higher for members; ``membership`` is boolean; ``unit`` says whose row it is, and rows
of one person then count together; ``inflation`` multiplies variances where scores depend on each
other.
"""

from leakscope.metrics.curves import Curve, Roc, auc_delong, roc, roc_curve_points, thin
from leakscope.metrics.epsilon import Epsilon, epsilon_lower_bound
from leakscope.metrics.experiment import Experiment, membership_experiment
from leakscope.metrics.groups import Group, by_group
from leakscope.metrics.histograms import Histogram, histogram
from leakscope.metrics.intervals import (
    Interval,
    advantage_p_value,
    auc_interval,
    holm,
    newcombe,
    wilson,
)
from leakscope.metrics.outcome import Outcome, judge
from leakscope.metrics.paired import advantage_difference, auc_difference, tpr_difference
from leakscope.metrics.power import records_to_rule_out, records_to_show_leak
from leakscope.metrics.rates import Rates, effective_size, excess
from leakscope.metrics.tails import Rate, tpr_at_fpr
from leakscope.metrics.thresholds import Threshold, best_threshold

__all__ = [
    "Curve",
    "Epsilon",
    "Experiment",
    "Group",
    "Histogram",
    "Interval",
    "Outcome",
    "Rate",
    "Rates",
    "Roc",
    "Threshold",
    "advantage_difference",
    "advantage_p_value",
    "auc_delong",
    "auc_difference",
    "auc_interval",
    "best_threshold",
    "by_group",
    "effective_size",
    "epsilon_lower_bound",
    "excess",
    "histogram",
    "holm",
    "judge",
    "membership_experiment",
    "newcombe",
    "records_to_rule_out",
    "records_to_show_leak",
    "roc",
    "roc_curve_points",
    "thin",
    "tpr_at_fpr",
    "tpr_difference",
    "wilson",
]
