"""Leave-one-out models that are only nearly right: what influence functions make of them.

With H the curvature of the sum at the optimum θ of all records and g that of one record's loss,
Koh & Liang (2017, section 2.1) move to θ + H⁻¹g without the record, which forgets that H loses the
record as well. One step of Newton's method, H_j⁻¹g, does not, and is exact for squared errors.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.exact.columns import LeftOut
from leakscope.exact.influence import LeaveOneOut, Method
from leakscope.exact.labels import named
from leakscope.exact.leaving_out import Task
from leakscope.exact.threads import single_products
from leakscope.protocols import Floats


def koh_liang(
    X: ArrayLike,
    y: ArrayLike,
    l2: float = 1.0,
    family: str = "auto",
    sample_weight: ArrayLike | None = None,
) -> LeaveOneOut:
    """The models without each record to first order; arguments as those of ``leave_one_out``."""
    return _approximated(Task.of(X, y, l2, family, sample_weight), LeftOut.first_order, "koh-liang")


def one_step_newton(
    X: ArrayLike,
    y: ArrayLike,
    l2: float = 1.0,
    family: str = "auto",
    sample_weight: ArrayLike | None = None,
) -> LeaveOneOut:
    """The models without each record after one Newton step from the model of all.

    Arguments as those of ``leave_one_out``.
    """
    return _approximated(Task.of(X, y, l2, family, sample_weight), _stepped, "one-step-newton")


def _stepped(left_out: LeftOut) -> Floats:
    if left_out.determined.any():
        alone = named(left_out.records[left_out.determined].tolist())
        raise InputError(f"No Newton step leads away from {alone}; use a larger l2")
    return left_out.one_step()


def _approximated(task: Task, change: Callable[[LeftOut], Floats], method: Method) -> LeaveOneOut:
    columns = []
    with single_products():
        for records in task.parts:
            left_out = LeftOut.of(task.regression, task.full, records)
            models = task.full.model[..., None] + change(left_out)
            columns.append(task.regression.parameters(models))
    return task.result(columns, method)
