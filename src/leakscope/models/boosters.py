"""Boosters of XGBoost and LightGBM, and their own files: trees as numbers, nothing that is run.

Their files (.json and .ubj of XGBoost, .txt of LightGBM) hold trees and the names of columns. They
do not hold the labels that classes stand for, nor how the model was trained: labels are taken from
the records, and shadow models need a recipe. Both libraries are imported where they are needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from leakscope.errors import InputError, LeakscopeError, ModelError
from leakscope.models.answers import (
    checked_numbers,
    checked_probabilities,
    class_numbers,
    first_line,
    squared_error,
)
from leakscope.models.categories import Categories, categories_of
from leakscope.models.feature_columns import check_width, has_columns, selected
from leakscope.models.sound_lightgbm import refuse_unsound_lightgbm
from leakscope.models.sound_trees import Unsound
from leakscope.models.sound_xgboost import refuse_unsound_xgboost
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task
from leakscope.records.checks import as_floats, holds_numbers
from leakscope.registry import register

START = 64  # bytes that tell what a file is
_LIGHTGBM = re.compile(rb"tree\r?\nversion=")
# What XGBoost puts before a message.
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")


class Library(Protocol):
    """What the two libraries differ in: all that is asked of a booster.

    number_of_classes: 0 for a regression. width: how many columns it was trained on.
    """

    name: str
    number_of_classes: int
    feature_names: list[str] | None
    default_names: list[str] | None
    width: int

    def column(self, name: str, column: pd.Series[Any]) -> Any:
        """A column of a table, (n,), as it was in training: categories as such, or numbers."""
        ...

    def answer(self, X: Any) -> Floats:
        """Probabilities (n, k), that of the second class (n,), or numbers (n,)."""
        ...


@register("model", "booster")
class BoosterModel:
    """A Booster of XGBoost or LightGBM, such as is in their own files."""

    def __init__(self, library: Library, classes: Labels | None = None) -> None:
        self.library = library
        self.name = library.name
        self.feature_names, self.default_names = library.feature_names, library.default_names
        self.reads_by_position = library.feature_names is None
        k = library.number_of_classes
        self.task: Task = "classification" if k else "regression"
        self.classes: Labels | None = None
        abilities: set[Ability] = {"labels", "queries", "loss"}
        if k:
            self.classes = np.arange(k) if classes is None else np.asarray(classes)
            abilities.add("probabilities")
            if len(self.classes) != k:
                raise ModelError(
                    f"This model of {self.name} has {k} classes and the labels are "
                    f"{len(self.classes)} different ones; pass classes= in the order in which they "
                    "were numbered for its training"
                )
        self.abilities = frozenset(abilities)

    @staticmethod
    def accepts(thing: Any) -> bool:
        """Whether it is a Booster of one of the two libraries."""
        return _library_of(thing) in _LIBRARIES

    @classmethod
    def wrap(
        cls, thing: Any, *, classes: Labels | None = None, task: Task | None = None
    ) -> BoosterModel:
        """The booster as a Model; without classes, class j stands for the label j."""
        library = _LIBRARIES[_library_of(thing)](thing)
        model = cls(library, classes if library.number_of_classes else None)
        if task is not None and task != model.task:
            raise ModelError(
                f"This model of {model.name} is for {model.task}; leave out task={task!r}"
            )
        return model

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,): the most probable class, or the number."""
        if self.classes is None:
            return checked_numbers(self._ask(X), len(X), self.name)
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k)."""
        k = self.library.number_of_classes
        return checked_probabilities(self._ask(X), len(X), self.name, k)

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,)."""
        if self.task == "regression":
            return squared_error(self._ask(X), y, self.name)
        return log_loss(self.predict_proba(X), class_numbers(self, y))

    def _ask(self, X: Any) -> Floats:
        try:
            return self.library.answer(self._as_trained(X))
        except LeakscopeError:
            raise
        except Exception as error:
            raise ModelError(
                f"{self.name} could not answer for these records: {_plainly(error)}"
            ) from error

    def _as_trained(self, X: Any) -> Any:
        """Columns in the order of training; texts of a column of categories as such."""
        if not isinstance(X, pd.DataFrame):
            check_width(X, self.library.width, self.name)
            return X if self.feature_names is None else pd.DataFrame(X, columns=self.feature_names)
        if self.feature_names is None:
            if has_columns(X, self.default_names):
                X = selected(X, self.default_names or [], self.name)
            check_width(X, self.library.width, self.name)
            return X.to_numpy(dtype=np.float64, na_value=np.nan)
        table = selected(X, self.feature_names, self.name)
        names = self.feature_names
        return pd.DataFrame({name: self.library.column(name, table[name]) for name in names})


class _XGBoost:
    """A Booster of XGBoost, asked in one thread."""

    name = "XGBoost"
    default_names: list[str] | None = None

    def __init__(self, booster: Any) -> None:
        self.booster = booster
        learner = json.loads(booster.save_config())["learner"]
        self.objective = str(learner["objective"]["name"])
        many = int(learner["learner_model_param"]["num_class"])
        self.number_of_classes = max(2, many) if self.objective in _PROBABILITIES else 0
        if not self.number_of_classes and not self.objective.startswith(("reg:", "count:")):
            raise ModelError(
                f"This model of XGBoost has the objective {self.objective!r}, which answers with "
                "neither class probabilities nor a number; train it with 'binary:logistic', "
                "'multi:softprob' or 'reg:squarederror'"
            )
        self.feature_names = None if booster.feature_names is None else [*booster.feature_names]
        self.width = int(booster.num_features())
        types = booster.feature_types or []
        known = categories_of(booster) if "c" in types else {}
        names = enumerate(self.feature_names or [])
        self.categories: dict[str, Categories] = {
            name: known[place] for place, name in names if place in known
        }
        if types.count("c") > len(known):
            raise ModelError(
                "This model of XGBoost has columns of categories, and does not hold the categories "
                "that it was trained on; train and save it with XGBoost 3.1 or newer"
            )

    def column(self, name: str, column: pd.Series[Any]) -> Any:
        known = self.categories.get(name)
        return _numbers(column) if known is None else known.column(name, column)

    def answer(self, X: Any) -> Floats:
        from xgboost import DMatrix

        rows = DMatrix(X, enable_categorical=True, nthread=1)
        # After early stopping, scikit-learn's interface asks the best rounds alone.
        best = self.booster.attr("best_iteration")
        rounds = (0, 0 if best is None else int(best) + 1)
        margin = self.objective in _MARGINS
        told = self.booster.predict(rows, iteration_range=rounds, output_margin=margin)
        return _MARGINS.get(self.objective, _as_it_is)(np.asarray(told, dtype=np.float64))


class _LightGBM:
    """A Booster of LightGBM, asked in one thread."""

    name = "LightGBM"

    def __init__(self, booster: Any) -> None:
        self.booster = booster
        header = booster.model_to_string(num_iteration=1)
        found = re.search(r"^objective=(\w+)", header, re.MULTILINE)
        objective = "custom" if found is None else found[1]
        classes = {"binary": 2, "multiclass": booster.num_model_per_iteration()}
        self.number_of_classes = classes.get(objective, 0)
        if objective not in _LIGHTGBM_OBJECTIVES:
            raise ModelError(
                f"This model of LightGBM has the objective {objective!r}, which answers with "
                "neither class probabilities nor a number; train it with 'binary', 'multiclass' or "
                "'regression'"
            )
        names = booster.feature_name()
        self.width = len(names)
        unnamed = names == [f"Column_{place}" for place in range(len(names))]
        self.feature_names = None if unnamed else [*names]
        self.default_names = [*names] if unnamed else None
        infos = re.search(r"^feature_infos=(.*)$", header, re.MULTILINE)
        kinds = [] if infos is None else infos[1].split()
        # Numbers are told by a range in brackets, categories by a list, an unused column by none.
        self.kinds = dict(zip(names, kinds, strict=False))

    def column(self, name: str, column: pd.Series[Any]) -> Any:
        kind = self.kinds.get(name, "")
        unused = kind == "none" and not holds_numbers(column)
        if self.booster.pandas_categorical and (unused or kind[:1] not in ("[", "n")):
            return column.astype("category")  # which LightGBM gives the categories of training
        return _numbers(column)

    def answer(self, X: Any) -> Floats:
        return np.asarray(self.booster.predict(X, num_threads=1), dtype=np.float64)


def _numbers(column: pd.Series[Any]) -> Any:
    """Numbers as floats: one library or the other refuses objects, and types with gaps."""
    return as_floats(column) if holds_numbers(column) else column


def _as_it_is(told: Floats) -> Floats:
    return told


def _logistic(margin: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(margin))


def _softmax(margins: Floats) -> Floats:
    from scipy.special import softmax

    return np.asarray(softmax(margins, axis=1))


# Objectives that classify but answer with something else than probabilities, and what makes them.
_MARGINS: dict[str, Callable[[Floats], Floats]] = {
    "binary:logitraw": _logistic,
    "multi:softmax": _softmax,
}
_PROBABILITIES = {"binary:logistic", "multi:softprob", *_MARGINS}
_LIGHTGBM_OBJECTIVES = {
    "binary", "multiclass", "regression", "regression_l1", "huber", "fair", "poisson", "quantile",
    "mape", "gamma", "tweedie",
}  # fmt: skip

_LIBRARIES: dict[str, Callable[[Any], Library]] = {"xgboost": _XGBoost, "lightgbm": _LightGBM}


def _library_of(thing: Any) -> str:
    """The package of a Booster; empty for everything else."""
    package = type(thing).__module__.partition(".")[0]
    return package if type(thing).__name__ == "Booster" else ""


def kind_of_booster(start: bytes) -> str | None:
    """Whose model a file is, by the bytes it starts with; None if it is neither's."""
    if _LIGHTGBM.match(start):
        return "lightgbm"
    # JSON, and universal binary JSON: both begin with an object whose first key is this.
    is_xgboost = start.startswith(b"{") and b"learner" in start[:START]
    return "xgboost" if is_xgboost else None


def read_booster(path: Path, library: str) -> Any:
    """The Booster in a file of this library, which is not unpickled."""
    name = _NAMES[library]
    try:
        made_by = import_module(library)
    except ImportError:
        raise InputError(
            f"The model file {str(path)!r} is a model of {name}, which is not installed; "
            f"pip install {library}"
        ) from None
    try:
        # From its bytes, XGBoost tells by itself how it is written, whatever the file's name.
        content = path.read_bytes()
        if library == "xgboost":
            refuse_unsound_xgboost(content)
            return made_by.Booster(model_file=bytearray(content))
        text = content.decode()
        refuse_unsound_lightgbm(text)
        return made_by.Booster(model_str=text)
    except Exception as error:
        why = f"the model {error}" if isinstance(error, Unsound) else _plainly(error)
        raise InputError(
            f"The model file {str(path)!r} cannot be read by {name} ({why}); save it again with "
            "save_model"
        ) from error


def _plainly(error: Exception) -> str:
    """What a library says, without the place in its source."""
    return _PLACE.sub("", first_line(error))


_NAMES = {"xgboost": _XGBoost.name, "lightgbm": _LightGBM.name}
