"""Algebra in place of training: what retraining many times would show, without retraining."""

from leakscope.exact.result import RidgeLeakage
from leakscope.exact.ridge import ridge_leakage
from leakscope.exact.worst_case import WorstCase, ridge_worst_case

__all__ = ["RidgeLeakage", "WorstCase", "ridge_leakage", "ridge_worst_case"]
