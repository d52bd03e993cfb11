"""Algebra in place of training: what retraining many times would show, without retraining."""

from leakscope.exact.approximations import koh_liang, one_step_newton
from leakscope.exact.influence import LeaveOneOut
from leakscope.exact.leaving_out import leave_one_out
from leakscope.exact.reading import leave_one_out_of
from leakscope.exact.result import RidgeLeakage
from leakscope.exact.ridge import ridge_leakage
from leakscope.exact.worst_case import WorstCase, ridge_worst_case

__all__ = [
    "LeaveOneOut",
    "RidgeLeakage",
    "WorstCase",
    "koh_liang",
    "leave_one_out",
    "leave_one_out_of",
    "one_step_newton",
    "ridge_leakage",
    "ridge_worst_case",
]
