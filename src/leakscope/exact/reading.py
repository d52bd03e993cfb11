"""The leave-one-out models of a fitted scikit-learn model, whose penalty it tells itself."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import ModelError
from leakscope.exact.influence import LeaveOneOut
from leakscope.exact.labels import feature_matrix
from leakscope.exact.leaving_out import leave_one_out
from leakscope.protocols import Floats, Labels, Progress

_SAMPLE = 500  # records whose predictions are compared
_ROUNDING = 1e-12
_VISIBLE = 1e-2  # of the largest change: an error that can alter who explains a prediction


def leave_one_out_of(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> LeaveOneOut:
    """The models without each record of a fitted LogisticRegression or Ridge.

    X (n, d), y (n,) and sample_weight (n,): what it was fitted on. The result is of the optimum of
    its objective; a UserWarning says so if the fit stopped so far from it that explanations of the
    fitted model's own predictions would be others.
    """
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    supported = isinstance(estimator, LogisticRegression | Ridge)
    if not supported or isinstance(estimator, LogisticRegressionCV):
        advice = "take one of them"
        if hasattr(estimator, "steps"):
            advice = "hand over its last step, with the features it was given"
        elif name.endswith("CV"):
            advice = "fit one with the penalty that was chosen"
        raise ModelError(
            f"Leave-one-out models are read from a LogisticRegression or a Ridge, not from a "
            f"{name}; {advice}"
        )
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise ModelError(f"The {name} is not fitted; fit it on these records first") from None
    if not estimator.fit_intercept:
        raise _refusal(name, "fit_intercept=False", "leave_one_out has a free intercept always")
    logistic = isinstance(estimator, LogisticRegression)
    labels = np.asarray(y)
    weights = _class_weights(estimator, labels, sample_weight) if logistic else sample_weight
    found = leave_one_out(
        _features(estimator, X),
        labels,
        _logistic_l2(estimator, name) if logistic else _ridge_l2(estimator, name),
        _logistic_family(estimator, labels) if logistic else "gaussian",
        weights,
        workers=workers,
        progress=progress,
    )
    _warn_if_far(name, found, _fitted_theta(estimator, logistic))
    return found


def _logistic_l2(estimator: Any, name: str) -> float:
    """The penalty of a LogisticRegression, if it is one of those that can be read."""
    options = estimator.get_params()
    penalty, ratio = options.get("penalty", "deprecated"), options.get("l1_ratio")
    if options["solver"] == "liblinear":
        raise _refusal(name, "solver='liblinear'", "it penalizes the intercept")
    if penalty in ("l1", "elasticnet") or (penalty == "deprecated" and ratio):
        raise _refusal(name, "an l1 penalty", "its optimum is not smooth in the records")
    if options.get("multi_class", "auto") == "ovr":
        raise _refusal(name, "multi_class='ovr'", "it is several models")
    if penalty is None or np.isinf(options["C"]):
        return 0.0
    return 1.0 / float(options["C"])


def _ridge_l2(estimator: Any, name: str) -> float:
    if estimator.positive:
        raise _refusal(name, "positive=True", "its optimum is not smooth in the records")
    alpha = np.asarray(estimator.alpha, dtype=np.float64)
    if alpha.size != 1 or estimator.coef_.ndim != 1:
        raise _refusal(name, "several targets", "each is a model of its own")
    return float(alpha.item())


def _refusal(name: str, what: str, why: str) -> ModelError:
    return ModelError(f"A {name} with {what} has no leave-one-out models here, as {why}")


def _logistic_family(estimator: Any, labels: Labels) -> str:
    """The family, if the model was fitted on these labels."""
    classes = np.unique(labels)
    if not np.array_equal(classes, estimator.classes_):
        raise ModelError(
            f"The model was fitted on {len(estimator.classes_)} classes, and the labels have "
            f"{len(classes)} that are not the same; hand over the records it was fitted on"
        )
    return "binomial" if len(classes) == 2 else "multinomial"


def _class_weights(
    estimator: Any, labels: Labels, sample_weight: ArrayLike | None
) -> ArrayLike | None:
    """The weight of each record, with that of its class."""
    by_class = estimator.class_weight
    if by_class is None:
        return sample_weight
    if not isinstance(by_class, dict):
        raise _refusal(
            type(estimator).__name__,
            f"class_weight={by_class!r}",
            "these weights change with each record; fit it with numbers for the classes",
        )
    factors = np.array([by_class.get(label, 1.0) for label in labels.tolist()])
    return factors if sample_weight is None else factors * np.asarray(sample_weight)


def _features(estimator: Any, X: ArrayLike) -> Floats:
    return feature_matrix(X, int(estimator.n_features_in_))


def _fitted_theta(estimator: Any, logistic: bool) -> Floats:
    """The parameters of the fitted model in the shape of ``LeaveOneOut.theta``."""
    weights = np.atleast_2d(estimator.coef_)
    intercept = np.reshape(estimator.intercept_, (-1, 1))
    theta = np.hstack([weights, intercept]).astype(np.float64)
    return theta if logistic and len(theta) > 1 else theta[0]


def _warn_if_far(name: str, found: LeaveOneOut, fitted: Floats) -> None:
    """Warn if the fitted model is off by more than what an explanation can see.

    Compared are the log-odds of one class, or the numbers predicted, with the largest change that
    a record makes to them: they have no units of their own and do not saturate. Each is compared
    as it is, and without what is common to all records: under a strong penalty leaving out any
    record moves the intercept most, and the weights of quite another model would not show.
    """
    rows = np.unique(np.linspace(0, len(found) - 1, _SAMPLE).astype(np.intp))
    X = found.X[rows]
    label = None if found.classes is None else np.repeat(found.classes[:1], len(rows))
    other = replace(found, theta_without=fitted[None], alike=np.zeros(1, dtype=np.intp))
    theta = np.atleast_2d(found.theta)
    rounding = _ROUNDING * float(np.abs(X @ theta[:, :-1].T + theta[:, -1]).max())
    ours, theirs = found.changes(X, label), other.changes(X, label)
    error, part = 0.0, 0.0
    for common in (0.0, 1.0):
        moved = np.abs(theirs - common * theirs.mean(axis=0))
        largest = np.abs(ours - common * ours.mean(axis=0)).max(axis=1)
        off, visible = float(np.median(moved)), float(np.median(largest))
        if off > rounding and off >= part * visible:
            error, part = off, off / max(visible, np.finfo(np.float64).tiny)
    if part > _VISIBLE:
        what = "prediction" if found.classes is None else "log-odds"
        advice = (
            "; fit it with a smaller tol, a LogisticRegression with solver='newton-cholesky' and "
            "tol=1e-10"
            if found.classes is not None
            else "; fit it with solver='cholesky'"
        )
        warnings.warn(
            f"The {name} stopped {error:.2g} short of its optimum in the {what} of its median "
            f"record, {part:.1%} of the largest change by a record there, too much to explain its "
            f"own predictions, and the models here are those of the optimum{advice}, on all of "
            "these records with these weights",
            stacklevel=3,
        )
