"""Trials: a recipe trained on known subsets of the records, and what is seen of each model."""

from leakscope.trials.designs import (
    bootstrap,
    expand,
    fixed_size,
    independent_halves,
    leave_one_out,
    model_seeds,
    paired,
    random_halves,
)
from leakscope.trials.engine import run_trials
from leakscope.trials.table import TargetTrial, Trials, drawn_together

__all__ = [
    "TargetTrial",
    "Trials",
    "bootstrap",
    "drawn_together",
    "expand",
    "fixed_size",
    "independent_halves",
    "leave_one_out",
    "model_seeds",
    "paired",
    "random_halves",
    "run_trials",
]
