"""The columns a fitted model was trained on, and features as the model reads them.

Each library keeps the names of columns in a place of its own. A model that was trained on an array
has no names, or default names such as Column_0: then positions count.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from leakscope.errors import ModelError
from leakscope.records.checks import listed, shown

# Where a meta-estimator of scikit-learn keeps a fitted estimator that reads the same columns.
# An ensemble's estimator_ is not fitted, so that its estimators_ come before.
_INSIDE = ("best_estimator_", "regressor_", "calibrated_classifiers_", "estimators_", "estimator_")
# Parts of scikit-learn that an estimator of another library inherits from, too.
_BASES = ("sklearn.base", "sklearn.utils")


def copied(X: Any) -> Any:
    """A copy of features for a user's code, which may work in place."""
    return X.copy() if isinstance(X, pd.DataFrame) else np.array(X)


def column_names(estimator: Any) -> list[str] | None:
    """The names of the columns that an estimator was trained on; None where it has none."""
    names = _names_kept(innermost(estimator))
    return None if names is None or _are_default(names, estimator) else names


def default_names(estimator: Any) -> list[str] | None:
    """The names that a library gave the columns of an array; None where it gave none."""
    names = _names_kept(innermost(estimator))
    return names if names is not None and _are_default(names, estimator) else None


def trained_on_array(estimator: Any) -> bool:
    """Whether an estimator is known to be trained on columns without names."""
    reader = innermost(estimator)
    if column_names(reader) is not None:
        return False
    if default_names(reader) is not None or library_of(reader) in ("skorch", "xgboost"):
        return True
    return library_of(reader) == "sklearn" and hasattr(reader, "n_features_in_")


def innermost(estimator: Any) -> Any:
    """The estimator that knows the columns: itself, the first step of a pipeline, or one inside."""
    opened = _opened(estimator)
    return next((one for one in opened if hasattr(one, "feature_names_in_")), opened[-1])


def may_lack_columns(estimator: Any) -> bool:
    """Whether columns that were in training need not be there: a ColumnTransformer drops some."""
    return any(type(one).__name__ == "ColumnTransformer" for one in _opened(estimator))


def _opened(estimator: Any) -> list[Any]:
    """An estimator, the one inside that reads the same columns, the one inside that, and so on.

    Only scikit-learn's own wrappers are opened. Others may read columns they made themselves.
    """
    inside = _inside(estimator) if library_of(estimator) == "sklearn" else None
    return [estimator, *([] if inside is None else _opened(inside))]


def library_of(estimator: Any) -> str:
    """The package that an estimator's class, or a class it inherits from, comes from."""
    for parent in type(estimator).__mro__:
        package = parent.__module__.partition(".")[0]
        if package in ("sklearn", "skorch", "xgboost", "lightgbm", "catboost") and not (
            parent.__module__.startswith(_BASES)
        ):
            return package
    return ""


def _inside(estimator: Any) -> Any:
    """The fitted estimator in a wrapper that reads the same columns; None where there is none."""
    if hasattr(estimator, "steps"):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        return steps[0] if steps else None
    if hasattr(estimator, "transformer_list"):
        return estimator.transformer_list[0][1]
    name = next((name for name in _INSIDE if hasattr(estimator, name)), "")
    if type(estimator).__name__ == "FrozenEstimator":
        name = "estimator"
    inside = getattr(estimator, name, None)
    if isinstance(inside, np.ndarray):
        inside = inside.ravel().tolist()
    if isinstance(inside, list):
        # In a vote, one of several kinds of estimators may be the only one that knows names.
        several = inside if hasattr(estimator, "named_estimators_") else []
        named = (one for one in several if column_names(one) is not None)
        inside = next(named, inside[0] if inside else None)
    if name == "calibrated_classifiers_":
        inside = getattr(inside, "estimator", None)
    return inside if hasattr(inside, "fit") else None


def _names_kept(reader: Any) -> list[str] | None:
    """The names where this library keeps them, default ones included."""
    library = library_of(reader)
    if library == "skorch":
        return _arguments(reader.module_)
    names = getattr(reader, "feature_names_in_", None)
    if names is None and library == "catboost":
        names = reader.feature_names_
    if names is None and library == "lightgbm":
        names = reader.feature_name_
    if names is None and library == "xgboost":
        names = reader.get_booster().feature_names
    return None if names is None else [str(name) for name in names]


def _are_default(names: Sequence[str], estimator: Any) -> bool:
    form = {"catboost": "{}", "lightgbm": "Column_{}"}.get(library_of(innermost(estimator)))
    return form is not None and list(names) == [form.format(place) for place in range(len(names))]


def _arguments(module: Any) -> list[str] | None:
    """The columns that skorch passes to a module by name; None where it passes one array."""
    parameters = inspect.signature(module.forward).parameters.values()
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    if len(required) < 2 or any(one.kind is not one.POSITIONAL_OR_KEYWORD for one in parameters):
        return None
    return [parameter.name for parameter in parameters]


def matching_columns(names: Sequence[str], frame: pd.DataFrame) -> list[Any]:
    """The column of the frame that each name stands for; the name itself where there is none.

    Numbers as columns are named by their digits, and LightGBM writes "_" for a space.
    """
    columns: list[Any] = list(frame.columns)
    exact = {str(column): column for column in columns}
    exact |= {column: column for column in columns if isinstance(column, str)}
    spaced: dict[str, Any] = {}
    for name, column in exact.items():
        plain = name.replace(" ", "_")
        rival = spaced.setdefault(plain, column)
        if rival != column and plain in names and not {str(rival), name} <= set(names):
            raise ModelError(
                f"Columns {shown(rival)} and {shown(column)} may both be the model's {plain!r}; "
                "drop the one that the model was not trained on"
            )
    return [exact.get(name, spaced.get(name, name)) for name in names]


def selected(frame: pd.DataFrame, names: Sequence[str], model: str) -> pd.DataFrame:
    """The columns of a model in the order of its training, under the names it has for them."""
    if list(frame.columns) == list(names):
        return frame
    columns = matching_columns(names, frame)
    for column in columns:
        if column not in frame.columns:
            raise ModelError(
                f"{model} was trained on the column {shown(column)}, which these records lack; "
                f"they have: {listed(frame.columns)}"
            )
    return frame[columns].set_axis(list(names), axis=1)


def check_width(X: Any, width: int | None, model: str) -> None:
    """Refuse another number of columns than in training: some libraries would answer all the same.

    CatBoost ignores surplus columns, and XGBoost takes absent ones as missing values.
    """
    if width is not None and np.ndim(X) == 2 and np.shape(X)[1] != width:
        trained, these = (
            f"{number} feature{'' if number == 1 else 's'}" for number in (width, np.shape(X)[1])
        )
        raise ModelError(
            f"{model} was trained on {trained} and these records have {these}; give the columns of "
            "its training, in that order"
        )


def has_columns(frame: pd.DataFrame, names: Sequence[str] | None) -> bool:
    """Whether a frame has all of these columns."""
    columns = None if names is None else matching_columns(names, frame)
    return columns is not None and all(column in frame.columns for column in columns)
