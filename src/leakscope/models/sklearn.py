"""Fitted scikit-learn estimators, and whatever follows their interface (XGBoost, LightGBM)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from leakscope.errors import LeakscopeError, ModelError
from leakscope.models.answers import (
    checked_labels,
    checked_numbers,
    checked_probabilities,
    class_numbers,
    first_line,
    in_order_of,
    squared_error,
)
from leakscope.models.feature_columns import (
    check_width,
    column_names,
    copied,
    default_names,
    has_columns,
    library_of,
    may_lack_columns,
    selected,
    trained_on_array,
)
from leakscope.models.linear import is_linear
from leakscope.models.parameters import has_parameters, parameters, with_parameters
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task
from leakscope.records.checks import holds_numbers
from leakscope.registry import register


@register("model", "scikit-learn")
class SklearnModel:
    """A fitted scikit-learn classifier or regressor, pipelines included."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.name = _plain_name(estimator)
        self.task: Task = "classification" if is_classifier(estimator) else "regression"
        self.classes: Labels | None = None
        abilities: set[Ability] = {"labels", "queries"}
        if self.task == "classification":
            self.classes = np.asarray(estimator.classes_)
            if hasattr(estimator, "predict_proba"):
                abilities |= {"probabilities", "loss"}
        else:
            abilities.add("loss")
        if has_parameters(estimator):
            abilities.add("parameters")
        if is_linear(estimator):
            abilities.add("gradients")
        self.abilities = frozenset(abilities)

    @staticmethod
    def accepts(thing: Any) -> bool:
        """Whether it is a classifier or a regressor in scikit-learn's sense."""
        # Classes have the same methods as their instances, and answer for none of them.
        if isinstance(thing, type) or not hasattr(thing, "get_params"):
            return False
        try:
            return bool(is_classifier(thing) or is_regressor(thing))
        except AttributeError:  # an imitation without scikit-learn's tags
            return False

    @classmethod
    def wrap(
        cls, thing: Any, *, classes: Labels | None = None, task: Task | None = None
    ) -> SklearnModel:
        """The estimator as a Model; it must be fitted and predict one output."""
        name = _plain_name(thing)
        try:
            check_is_fitted(thing)
        except NotFittedError:
            raise ModelError(f"This {name} is not fitted; fit it on the members first") from None
        if not hasattr(thing, "predict"):
            raise ModelError(f"This {name} cannot predict; make it with refit=True if it searches")
        if is_classifier(thing) and isinstance(thing.classes_, list):
            raise ModelError(
                f"This {name} has {len(thing.classes_)} outputs per record; audit one output at a "
                "time"
            )
        model = cls(thing)
        if task is not None and task != model.task:
            raise ModelError(f"This {name} is for {model.task}; leave out task={task!r}")
        if classes is not None and not np.array_equal(classes, model.classes):  # type: ignore[arg-type]
            raise ModelError(f"This {name} knows its classes, which are others; leave out classes=")
        return model

    @property
    def feature_names(self) -> list[str] | None:
        """The columns it was fitted on, where it knows their names."""
        return column_names(self.estimator)

    @property
    def default_names(self) -> list[str] | None:
        """The names its library gave the columns of an array, such as Column_0."""
        return default_names(self.estimator)

    @property
    def reads_by_position(self) -> bool:
        """Whether it takes the columns of a table by their position."""
        return trained_on_array(self.estimator)

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,)."""
        checked = checked_numbers if self.task == "regression" else checked_labels
        return checked(self._ask("predict", X), len(X), self.name)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k)."""
        k = None if self.classes is None else len(self.classes)
        answer = in_order_of(self.classes, self._ask("predict_proba", X))
        return checked_probabilities(answer, len(X), self.name, k)

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,)."""
        if self.task == "regression":
            return squared_error(self.predict(X), y, self.name)
        return log_loss(self.predict_proba(X), class_numbers(self, y))

    def parameters(self) -> Floats:
        """The parameter vector, (p,): coefficients, then intercepts."""
        return parameters(self.estimator)

    def with_parameters(self, vector: Floats) -> SklearnModel:
        """The same model with other parameters (p,), and nothing else left of its training."""
        return SklearnModel(with_parameters(self.estimator, vector))

    def _ask(self, method: str, X: Any) -> Any:
        try:
            given, net = self.as_fitted(copied(X)), _skorch_net(self.estimator)
            return getattr(self.estimator, method)(
                given if net is None else _as_trained(given, net)
            )
        except LeakscopeError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"{self.name} could not answer for these records: {first_line(error)}"
            ) from error

    def as_fitted(self, X: Any) -> Any:
        """Features with names or without, as in training: scikit-learn warns about a change."""
        names, width = self.feature_names, getattr(self.estimator, "n_features_in_", None)
        if not isinstance(X, pd.DataFrame):
            check_width(X, width, self.name)
            return X if names is None or np.ndim(X) != 2 else pd.DataFrame(X, columns=names)
        if names is not None:
            if may_lack_columns(self.estimator) and not has_columns(X, names):
                return X  # it checks by itself that it has the columns that it needs
            return selected(X, names, self.name)
        if has_columns(X, self.default_names):
            X = selected(X, self.default_names or [], self.name)
        elif not self.reads_by_position:
            return X  # a step, or another library, may read columns by name
        check_width(X, width, self.name)
        return _without_names(X)


def _skorch_net(estimator: Any) -> Any:
    """The skorch net that an estimator is, or has at its end or inside; None for all others."""
    if hasattr(estimator, "steps"):
        return _skorch_net(estimator.steps[-1][1])
    inner = getattr(estimator, "best_estimator_", None)
    if inner is not None:
        return _skorch_net(inner)
    return estimator if library_of(estimator) == "skorch" else None


def _as_trained(X: Any, net: Any) -> Any:
    """A copy of the features with fractions in the precision of a skorch net.

    The net hands them to torch as they are, which neither converts them nor takes a locked array.
    """
    weights = next(net.module_.parameters(), None)
    dtype = np.float64 if str(getattr(weights, "dtype", "")) == "torch.float64" else np.float32
    if isinstance(X, pd.DataFrame):
        fractions = [column for column in X.columns if X[column].dtype.kind == "f"]
        return X.astype(dict.fromkeys(fractions, dtype))
    array = np.array(X)
    return array.astype(dtype, copy=False) if array.dtype.kind == "f" else array


def _without_names(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    if all(holds_numbers(frame[column]) for column in frame.columns):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.to_numpy()


def _plain_name(estimator: Any) -> str:
    """The class's name; for a pipeline or a search, that of the model inside."""
    if hasattr(estimator, "steps"):
        return _plain_name(estimator.steps[-1][1])
    inner = getattr(estimator, "best_estimator_", None)
    return type(estimator).__name__ if inner is None else _plain_name(inner)
