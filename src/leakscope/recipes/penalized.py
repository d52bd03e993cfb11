"""Ridge and logistic regression with a penalty on what their noisy release tells of each record.

They minimize mean loss + l2·‖w‖² + leakage_weight · (mean of ρ^power)^(1/power), ρ what the release
of a plain estimator with these parameters would tell of a training record, for many records, in
nats (leakage_objective.py; left as future work by Farokhi & Kaafar 2020, section 7). Measured by
retraining they leak no less than plain L2 of the same loss (docs/future_works.md).

The release: parameters rounded to multiples of ``grid``, with Gaussian noise of deviation
``noise``. power: 1 for the average record, more for those of whom most is told. The intercept is in
no l2; it is released, and counts in ρ, like the rest. release: whether coef_ and intercept_ are
rounded and noisy already, by random_state; else releasing is left to whoever does it, and leakage_
(n,) is ρ of each record. l2 is beside the mean loss, as in exact.ridge_leakage: scikit-learn's
alpha over n, or 1/(2nC).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from leakscope.errors import InputError
from leakscope.options import magnitude
from leakscope.protocols import Floats, Labels, Recipe
from leakscope.recipes.leakage_objective import (
    LeakageObjective,
    Loss,
    logistic_loss,
    penalized_minimum,
    squared_loss,
)
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.registry import register


class _LeakagePenalized(BaseEstimator):  # type: ignore[misc]
    """What both models share: options, the fit, the release."""

    def __init__(
        self,
        l2: float = 0.01,
        leakage_weight: float = 1.0,
        noise: float = 0.1,
        grid: float | None = None,
        power: float = 1.0,
        *,
        fit_intercept: bool = True,
        release: bool = False,
        max_iter: int = 200,
        tol: float = 1e-7,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.leakage_weight = leakage_weight
        self.noise = noise
        self.grid = grid
        self.power = power
        self.fit_intercept = fit_intercept
        self.release = release
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit_parameters(self, X: Floats, y: Floats, loss: Loss) -> Floats:
        """The parameters (p + 1,), the intercept last; it keeps ρ of each record."""
        variance = self._checked_variance()
        n, p = X.shape
        l2 = np.full(p, float(self.l2))
        design = X
        if self.fit_intercept:
            design, l2 = np.column_stack([X, np.ones(n)]), np.append(l2, 0.0)
        objective = LeakageObjective(design, y, loss, l2, self.leakage_weight, variance, self.power)
        theta, self.n_iter_, reached = penalized_minimum(objective, self.max_iter, self.tol)
        if not reached:
            warnings.warn(
                f"L-BFGS took {self.n_iter_} steps and did not arrive; raise max_iter, or lower "
                "leakage_weight",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.release:
            theta = self._released(theta)
        else:  # whoever sees the release sees no unrounded ρ of its members
            self.leakage_ = objective.leakage(theta)
        return theta if self.fit_intercept else np.append(theta, 0.0)

    def _released(self, theta: Floats) -> Floats:
        if self.grid is not None:
            theta = np.rint(theta / self.grid) * self.grid
        random = check_random_state(self.random_state)
        return np.asarray(theta + self.noise * random.standard_normal(len(theta)))

    def _checked_variance(self) -> float:
        """σ² of the release; refuses options that make no sense."""
        limits = {"l2": 0.0, "leakage_weight": 0.0, "noise": 0.0, "power": 1.0, "max_iter": 1.0}
        for name, least in limits.items():
            magnitude(name, getattr(self, name), least=least)
        if self.grid is not None:
            magnitude("grid", self.grid, above=0)
        variance = self.noise**2 + (0.0 if self.grid is None else self.grid**2 / 12)
        if variance == 0 and self.leakage_weight > 0:
            raise InputError(
                "Without noise and grid every model leaks the same on average, and there is "
                "nothing to penalize; give noise or grid, or leakage_weight=0"
            )
        return float(variance)


class LeakagePenalizedRidge(RegressorMixin, _LeakagePenalized):  # type: ignore[misc]
    """Least squares with penalties on size and on leakage; the options are those of the module."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> LeakagePenalizedRidge:
        """Fit to features (n, p) and targets (n,)."""
        features, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        theta = self._fit_parameters(features, targets, squared_loss)
        self.coef_, self.intercept_ = theta[:-1], float(theta[-1])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """A number for each record, (n,)."""
        check_is_fitted(self)
        features: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(features @ self.coef_ + self.intercept_)


class LeakagePenalizedLogistic(ClassifierMixin, _LeakagePenalized):  # type: ignore[misc]
    """Logistic regression of two classes, penalized alike; the options are those of the module."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> LeakagePenalizedLogistic:
        """Fit to features (n, p) and labels (n,) of two classes."""
        features, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) != 2:
            kind = "one class" if len(self.classes_) == 1 else "multiclass"
            raise InputError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}: it has {len(self.classes_)} of them"
            )
        theta = self._fit_parameters(features, codes.astype(np.float64), logistic_loss)
        margins = (2 * codes - 1) * (features @ theta[:-1] + theta[-1])
        if self.l2 == 0 and (margins > 0).all():
            warnings.warn(
                "The two classes can be told apart without error, so that without l2 there is no "
                "finite solution, and leakage_ means nothing; give an l2 above 0",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_, self.intercept_ = theta[None, :-1], theta[-1:]
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """The log-odds of the second class, (n,)."""
        check_is_fitted(self)
        features: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(features @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """The probability of each class, (n, 2)."""
        scores = self.decision_function(X)
        return np.stack([expit(-scores), expit(scores)], axis=1)

    def predict(self, X: ArrayLike) -> Labels:
        """The likelier class, (n,)."""
        second = self.decision_function(X) > 0
        likelier: Labels = self.classes_[second.astype(np.intp)]
        return likelier

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@register("recipe", "penalized-ridge")
def penalized_ridge() -> Recipe:
    """Ridge regression with a penalty on leakage, released with noise; no better than L2."""
    model = LeakagePenalizedRidge(release=True)
    return SklearnRecipe("penalized-ridge", make_pipeline(StandardScaler(), model), prepare=True)


@register("recipe", "penalized-logistic")
def penalized_logistic() -> Recipe:
    """Logistic regression with a leakage penalty, released with noise; no better than L2."""
    model = LeakagePenalizedLogistic(release=True)
    return SklearnRecipe("penalized-logistic", make_pipeline(StandardScaler(), model), prepare=True)
