"""Trials: a recipe trained on known subsets of the records, and what is seen of each model."""

from leakscope.trials.designs import (
    bootstrap,
    expand,
    fixed_size,
    leave_one_out,
    model_seeds,
    paired,
    random_halves,
)
from leakscope.trials.engine import run_trials
from leakscope.trials.table import Trials

__all__ = [
    "Trials",
    "bootstrap",
    "expand",
    "fixed_size",
    "leave_one_out",
    "model_seeds",
    "paired",
    "random_halves",
    "run_trials",
]
