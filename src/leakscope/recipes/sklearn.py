"""scikit-learn estimators as recipes: cloned and seeded for every model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakscope.errors import ModelError
from leakscope.models.answers import first_line
from leakscope.models.feature_columns import copied
from leakscope.models.sklearn import SklearnModel
from leakscope.protocols import Model, Recipe
from leakscope.recipes.preprocessing import with_preprocessing
from leakscope.records import Records
from leakscope.registry import register


@dataclass(frozen=True)
class SklearnRecipe(Recipe):
    """An unfitted estimator, cloned, seeded and kept to one thread for each model.

    prepare: whether tables are encoded, their gaps filled, and images flattened before it; by
    default where it is no pipeline, which prepares its records itself.
    """

    name: str
    estimator: Any
    prepare: bool | None = None

    @property
    def prepares(self) -> bool:
        """Whether tables and images are made fit for the estimator."""
        return not _is_pipeline(self.estimator) if self.prepare is None else self.prepare

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n), each a clone trained on the records of role 1."""
        return [
            self.fit(records.take(np.flatnonzero(row == 1)), seed)
            for row, seed in zip(roles, seeds, strict=True)
        ]

    def fit(self, records: Records, seed: int) -> SklearnModel:
        """One model, trained on all of the records, of which the estimator gets a copy."""
        X, y = copied(records.X), records.y.copy()
        model = clone(self.estimator)
        if self.prepares:
            model = with_preprocessing(model, records.X)
        try:
            with warnings.catch_warnings(), _seeded_globally(seed):
                # How many steps to take is part of the recipe: that they were all taken is no news.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.set_params(**_repeatable(model, seed)).fit(X, y)
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"The recipe {self.name!r} could not be trained on the {len(records)} "
                f"{records.name}: {first_line(error)}"
            ) from error
        return SklearnModel(model)


@contextmanager
def _seeded_globally(seed: int) -> Iterator[None]:
    """Seed numpy's global state, which splitters without a seed of their own draw from."""
    before = np.random.get_state()  # noqa: NPY002  # it is others who use it
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _repeatable(model: Any, seed: int) -> dict[str, int]:
    """What to set in it and in the estimators inside, so that the same seed gives the same model.

    One thread: sums of several threads are not repeatable, and a run has a worker per core.
    """
    parameters = model.get_params()
    settings = {}
    for path, value in parameters.items():
        owner, _, name = path.rpartition("__")
        if name == "random_state":
            settings[path] = seed
        if name == "n_jobs" and value != 1:
            holder = parameters.get(owner, model)
            # None is one thread in scikit-learn, and in LightGBM and XGBoost all there are.
            if value is not None or not type(holder).__module__.startswith("sklearn."):
                settings[path] = 1
    return settings


def _is_pipeline(estimator: Any) -> bool:
    """Whether it is a pipeline, or a search or an ensemble over one."""
    if hasattr(estimator, "steps"):
        return True
    inner = getattr(estimator, "estimator", None)
    return inner is not None and _is_pipeline(inner)


@register("recipe", "forest")
def forest() -> Recipe:
    """A random forest of 100 trees grown to the end, scikit-learn's default."""
    return SklearnRecipe("forest", RandomForestClassifier(n_jobs=1), prepare=True)


@register("recipe", "tree")
def tree() -> Recipe:
    """A decision tree grown to the end."""
    return SklearnRecipe("tree", DecisionTreeClassifier(), prepare=True)


@register("recipe", "logistic")
def logistic() -> Recipe:
    """Logistic regression with standardized features."""
    # Close enough to the optimum for the influence of single records to be that of this model.
    model = LogisticRegression(tol=1e-6, max_iter=1000)
    return SklearnRecipe("logistic", make_pipeline(StandardScaler(), model), prepare=True)


@register("recipe", "boosting")
def boosting() -> Recipe:
    """Gradient-boosted trees."""
    return SklearnRecipe("boosting", HistGradientBoostingClassifier(), prepare=True)


@register("recipe", "nearest")
def nearest() -> Recipe:
    """One nearest neighbour: it keeps its training records, and shows it."""
    return SklearnRecipe("nearest", KNeighborsClassifier(n_neighbors=1), prepare=True)


@register("recipe", "network")
def network() -> Recipe:
    """A small neural network with standardized features, 200 passes over the records at most."""
    return SklearnRecipe(
        "network", make_pipeline(StandardScaler(), MLPClassifier(max_iter=200)), prepare=True
    )


@register("recipe", "forest-regressor")
def forest_regressor() -> Recipe:
    """A random forest that predicts a number."""
    return SklearnRecipe("forest-regressor", RandomForestRegressor(n_jobs=1), prepare=True)


@register("recipe", "ridge")
def ridge() -> Recipe:
    """Ridge regression with standardized features."""
    return SklearnRecipe("ridge", make_pipeline(StandardScaler(), Ridge()), prepare=True)
