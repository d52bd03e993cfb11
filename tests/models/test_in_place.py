"""User code that works in place changes a copy: numbers and the caller's data stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import leakscope as ls
from leakscope.channels.influence import explained
from leakscope.errors import ModelError
from leakscope.models import as_model
from leakscope.models.linear import LinearMap
from leakscope.protocols import Ability, Recipe, Task
from leakscope.recipes import as_recipe, train
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.trials import random_halves, run_trials

NAMES = ["age", "pay", "size"]


def side(n: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 3 + 5
    return X, (X[:, 0] + 2 * rng.normal(size=n) > 5).astype(int)


MEMBERS, NONMEMBERS = side(80, 0), side(80, 1)
CENTRE = MEMBERS[0].mean(axis=0)
NEAREST = KNeighborsClassifier(3).fit(MEMBERS[0] - CENTRE, MEMBERS[1])


class Centre(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A step of one's own that works in place, or on a copy."""

    def __init__(self, in_place: bool = True) -> None:
        self.in_place = in_place

    def fit(self, X: Any, y: Any = None) -> Centre:
        self.mean_ = np.asarray(X).mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        if isinstance(X, pd.DataFrame):
            X = X if self.in_place else X.copy()
            for place, name in enumerate(X.columns):
                X[name] -= self.mean_[place]
            return X.to_numpy()
        if not self.in_place:
            return X - self.mean_
        X -= self.mean_
        return X


class Net(nn.Module):
    def __init__(self, in_place: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.in_place, self.layer = in_place, nn.Linear(3, 2)
        self.register_buffer("mean", torch.tensor(CENTRE, dtype=torch.float32))

    def forward(self, x: Any) -> Any:
        return self.layer(x.sub_(self.mean) if self.in_place else x - self.mean)


class Own:
    """A model of one's own class."""

    name = "own"
    task: Task = "classification"
    abilities: frozenset[Ability] = frozenset({"labels", "probabilities", "loss", "queries"})
    classes = np.array([0, 1])

    def __init__(self, in_place: bool) -> None:
        self.in_place = in_place

    def predict_proba(self, X: Any) -> Any:
        return function(self.in_place)(X)

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X).argmax(axis=1)

    def loss(self, X: Any, y: Any) -> Any:
        return -np.log(self.predict_proba(X)[np.arange(len(y)), y].clip(1e-7))


def function(in_place: bool) -> Callable[[Any], Any]:
    def answer(X: Any) -> Any:
        if isinstance(X, pd.DataFrame):
            X = X if in_place else X.copy()
            for place, name in enumerate(NAMES):
                X[name] -= CENTRE[place]
            return NEAREST.predict_proba(X[NAMES].to_numpy())
        if not in_place:
            return NEAREST.predict_proba(X - CENTRE)
        X -= CENTRE
        return NEAREST.predict_proba(X)

    return answer


def pipeline(in_place: bool, scaler: Any = None) -> Any:
    step = Centre(in_place) if scaler is None else scaler
    return make_pipeline(step, KNeighborsClassifier(3)).fit(MEMBERS[0].copy(), MEMBERS[1])


KINDS: dict[str, Callable[[bool], Any]] = {
    "function": function,
    "step of one's own": pipeline,
    "scaler without a copy": lambda in_place: pipeline(in_place, StandardScaler(copy=not in_place)),
    "method": lambda in_place: pipeline(in_place).predict_proba,
    "torch": Net,
    "own model": Own,
}


def audited(model: Any, members: Any, nonmembers: Any, **options: Any) -> Any:
    chosen = {"attacks": ["loss", "label-gap", "robustness"], **options}
    return ls.audit(model, members, nonmembers, **chosen).data["outcomes"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_of_arrays(kind: str) -> None:
    sides = [(X.copy(), y.copy()) for X, y in (MEMBERS, NONMEMBERS)]
    expected = audited(KINDS[kind](False), *sides)
    assert audited(KINDS[kind](True), *sides) == expected
    for (X, y), (before, labels) in zip(sides, (MEMBERS, NONMEMBERS), strict=True):
        np.testing.assert_array_equal(X, before)
        np.testing.assert_array_equal(y, labels)
        assert X.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_of_tables(kind: str) -> None:
    sides = [pd.DataFrame(X, columns=NAMES).assign(y=y) for X, y in (MEMBERS, NONMEMBERS)]
    before = [side.copy() for side in sides]
    expected = audited(KINDS[kind](False), *sides, label="y")
    assert audited(KINDS[kind](True), *sides, label="y") == expected
    for table, same in zip(sides, before, strict=True):
        pd.testing.assert_frame_equal(table, same)


def test_a_step_that_was_fitted_on_a_table() -> None:
    table = pd.DataFrame(MEMBERS[0], columns=NAMES)
    answers = []
    for in_place in (False, True):
        steps = make_pipeline(Centre(in_place), KNeighborsClassifier(3))
        model = as_model(steps.fit(table.copy(), MEMBERS[1]))
        answers += [model.predict_proba(table), model.predict_proba(table)]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    np.testing.assert_array_equal(table.to_numpy(), MEMBERS[0])


def test_a_table_that_a_function_drops_columns_of() -> None:
    def dropping(X: pd.DataFrame) -> Any:
        del X["size"]
        X.insert(0, "sum", X.sum(axis=1))
        return np.column_stack([X["sum"] > 12, X["sum"] <= 12]) * 1.0

    table = pd.DataFrame(MEMBERS[0], columns=NAMES)
    model = as_model(dropping)
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(table))
    assert list(table.columns) == NAMES


def test_explanations_of_a_network_and_of_a_pipeline() -> None:
    sides = [(X.copy(), y) for X, y in (MEMBERS, NONMEMBERS)]
    attacks = {"attacks": ["gradient-norm"]}
    expected = audited(Net(False), *sides, **attacks)
    assert audited(Net(True), *sides, **attacks) == expected
    np.testing.assert_array_equal(sides[0][0], MEMBERS[0])
    for scaler in (StandardScaler(), StandardScaler(copy=False)):
        linear = make_pipeline(scaler, LogisticRegression()).fit(MEMBERS[0].copy(), MEMBERS[1])
        LinearMap.of(linear)  # refuses a model that answers otherwise than by its coefficients


def test_the_influence_of_records_behind_a_step_that_works_in_place() -> None:
    found = []
    for copy in (True, False):
        steps = make_pipeline(StandardScaler(copy=copy), Ridge(1.0))
        X, y = MEMBERS[0].copy(), MEMBERS[0][:, 0] * 2
        model = explained(as_model(steps.fit(X.copy(), y)), Records(X, y))
        found.append([model.prepared(X), model.prepared(X)])
        np.testing.assert_array_equal(X, MEMBERS[0])
    np.testing.assert_allclose(found[1], [found[0][0], found[0][0]])


@pytest.mark.parametrize("form", [np.array, lambda X: pd.DataFrame(X, columns=NAMES)])
@pytest.mark.parametrize("workers", [1, 2])
def test_training_in_place_leaves_the_records_alone(form: Any, workers: int) -> None:
    X = form(MEMBERS[0])
    records = Records(X, MEMBERS[1].copy())
    roles = random_halves(len(records), 6, 0)
    seen = []
    for in_place in (False, True):
        steps = make_pipeline(Centre(in_place), StandardScaler(copy=not in_place), Ridge())
        recipe = SklearnRecipe("in place", steps, prepare=False)
        trials = run_trials(recipe, records, roles, ["loss"], workers=workers)
        seen.append(np.asarray(trials.observations["loss"][:, :]))
        train(recipe, records, 0)
        recipe.fit(records, 0)
    np.testing.assert_array_equal(*seen)
    np.testing.assert_array_equal(np.asarray(X), MEMBERS[0])
    np.testing.assert_array_equal(records.y, MEMBERS[1])


def test_training_a_network_in_place_leaves_the_records_alone() -> None:
    X = MEMBERS[0].astype(np.float32)
    for in_place in (False, True):
        recipe = TorchRecipe("net", lambda d, k, way=in_place: Net(way), epochs=2)
        records = Records(X.copy(), MEMBERS[1])
        model = train(recipe, records, 0)
        model.predict(records.X)
        np.testing.assert_array_equal(records.X, X)


class Rough(Recipe):
    """A recipe of one's own that changes what it is given."""

    name = "rough"

    def fit_many(self, records: Records, roles: Any, seeds: Any) -> list[Any]:
        X: Any = records.X
        X -= CENTRE
        return [as_model(NEAREST) for _ in roles]


def test_a_recipe_that_changes_the_pool_is_refused_for_any_number_of_workers() -> None:
    records = Records(MEMBERS[0].copy(), MEMBERS[1])
    roles = random_halves(len(records), 2, 0)
    for workers in (1, 2):
        with pytest.raises(
            ModelError, match="read-only; let the recipe work on a copy of the records"
        ):
            run_trials(as_recipe(Rough()), records, roles, ["loss"], workers=workers)
    np.testing.assert_array_equal(records.X, MEMBERS[0])
