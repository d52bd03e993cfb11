from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakscope.errors import ModelError, RecordsError, UnknownNameError
from leakscope.protocols import Model
from leakscope.recipes import named_recipe, train
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.records import Records
from leakscope.registry import entries

N = 60
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
TABLE = pd.DataFrame(
    {
        "age": np.where(X[:, 0] > 1, np.nan, X[:, 0]),
        "job": np.where(X[:, 1] > 1, None, np.where(X[:, 1] > 0, "clerk", "nurse")),
        "full": X[:, 2] > 0,
    }
)
ROLES = (rng.random((3, N)) < 0.5).astype(np.int8) * rng.integers(1, 3, size=(3, N)).astype(np.int8)
RECIPES = [entry.name for entry in entries("recipe")]
NUMBERS = {"forest-regressor", "penalized-ridge", "ridge"}


def records_for(name: str, X: Any = X) -> Records:
    return Records(X, X[:, 0] * 2 + X[:, 2] if name in NUMBERS else Y)


def answers(model: Model, X: Any) -> NDArray[Any]:
    return model.predict(X) if model.task == "regression" else model.predict_proba(X)


@pytest.mark.parametrize("name", RECIPES)
def test_many_models_are_those_of_each_subset(name: str) -> None:
    records = records_for(name)
    recipe = named_recipe(name)
    models = recipe.fit_many(records, ROLES, [5, 6, 7])
    assert len(models) == 3
    for model, row, seed in zip(models, ROLES, [5, 6, 7], strict=True):
        alone = recipe.fit(records.take(np.flatnonzero(row == 1)), seed)
        np.testing.assert_array_equal(answers(model, X), answers(alone, X))
        assert model.task == ("regression" if name in NUMBERS else "classification")


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_seed_gives_the_same_model(name: str) -> None:
    records = records_for(name)
    first, second = (named_recipe(name).fit(records, 11) for _ in range(2))
    np.testing.assert_array_equal(answers(first, X), answers(second, X))
    assert first.estimator is not second.estimator


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_takes_a_table_with_text_and_gaps(name: str) -> None:
    y = X[:, 0] if name in NUMBERS else np.where(Y == 1, "high", "low")
    records = Records(TABLE, y)
    model = named_recipe(name).fit(records, 0)
    assert np.isfinite(answers(model, TABLE).astype(float)).all()
    # Texts it has not seen, and more gaps, are answered for too.
    strange = TABLE.assign(job="astronaut", age=np.nan)
    assert len(model.predict(strange)) == N


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_takes_images(name: str) -> None:
    images = X.reshape(N, 3, 1, 1)
    records = Records(images, X[:, 0] if name in NUMBERS else Y)
    flat = Records(X, records.y)
    recipe = named_recipe(name)
    np.testing.assert_array_equal(
        answers(recipe.fit(records, 3), images), answers(recipe.fit(flat, 3), X)
    )


def seeds_in(model: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in model.get_params().items()
        if name.endswith("random_state") and value is not None
    }


def test_every_random_state_is_set_however_deep() -> None:
    bagging = BaggingClassifier(DecisionTreeClassifier(), n_estimators=3)
    recipe = SklearnRecipe("mine", GridSearchCV(bagging, {"n_estimators": [2]}, cv=2))
    model = recipe.fit(Records(X, Y), 8).estimator
    assert seeds_in(model) == {
        "estimator__random_state": 8,
        "estimator__estimator__random_state": 8,
    }
    assert seeds_in(recipe.estimator) == {}


def threads_in(model: Any) -> dict[str, Any]:
    return {name: value for name, value in model.get_params().items() if name.endswith("n_jobs")}


def test_every_model_is_trained_by_one_thread_however_deep() -> None:
    bagging = BaggingClassifier(RandomForestClassifier(2, n_jobs=-1), n_estimators=2)
    search = GridSearchCV(bagging, {"n_estimators": [2]}, cv=2, n_jobs=2)
    recipe = SklearnRecipe("mine", search)
    model = train(recipe, Records(X, Y), 0)
    assert threads_in(model.estimator) == {
        "n_jobs": 1,
        "estimator__n_jobs": None,  # one, in scikit-learn
        "estimator__estimator__n_jobs": 1,
    }
    assert threads_in(recipe.estimator)["n_jobs"] == 2


def test_none_is_all_threads_outside_of_scikit_learn() -> None:
    estimator = LGBMClassifier(n_estimators=2, verbose=-1)
    assert estimator.n_jobs is None
    assert SklearnRecipe("mine", estimator).fit(Records(X, Y), 0).estimator.n_jobs == 1
    pipeline = make_pipeline(StandardScaler(), estimator)
    inside = SklearnRecipe("mine", pipeline).fit(Records(X, Y), 0).estimator
    assert inside[-1].n_jobs == 1


def test_the_seed_matters_and_the_estimator_handed_in_is_left_alone() -> None:
    estimator = RandomForestClassifier(3, random_state=99)
    recipe = SklearnRecipe("mine", estimator)
    records = Records(X, Y)
    one, two = (answers(recipe.fit(records, seed), X) for seed in (1, 2))
    assert (one != two).any()
    assert estimator.random_state == 99
    assert not hasattr(estimator, "estimators_")


def test_an_estimator_of_ones_own_is_prepared_for_unless_it_is_a_pipeline() -> None:
    records = Records(TABLE, Y)
    bare = SklearnRecipe("mine", LogisticRegression()).fit(records, 0)
    assert [name for name, _ in bare.estimator.steps] == [
        "plaintable", "columntransformer", "logisticregression",
    ]  # fmt: skip
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), ("passthrough", ["full"])
    )
    own = make_pipeline(encoder, LogisticRegression())
    search = GridSearchCV(own, {"logisticregression__C": [1.0]}, cv=2)
    for estimator in (own, search):
        model = SklearnRecipe("mine", estimator).fit(records, 0)
        assert type(model.estimator) is type(estimator)
        assert model.feature_names == ["age", "job", "full"]


def test_preparing_can_be_asked_for_and_left_out() -> None:
    records = Records(TABLE, Y)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert SklearnRecipe("mine", pipeline, prepare=True).fit(records, 0).predict(TABLE).shape == (
        N,
    )
    with pytest.raises(
        ModelError, match="The recipe 'mine' could not be trained on the 60 records"
    ):
        SklearnRecipe("mine", LogisticRegression(), prepare=False).fit(records, 0)


def test_what_cannot_be_trained_is_one_sentence() -> None:
    recipe = named_recipe("logistic")
    gaps = Records(np.where(X > 1, np.nan, X), Y, name="staff")
    with pytest.raises(
        ModelError, match=r"'logistic' could not be .* the 60 staff: .*NaN"
    ) as caught:
        recipe.fit(gaps, 0)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match=r"could not be trained on the 60 records: .* one class"):
        recipe.fit(Records(X, np.zeros(N)), 0)


def test_a_row_of_roles_without_members_is_refused() -> None:
    with pytest.raises(RecordsError, match="None of the 60 records is left"):
        named_recipe("tree").fit_many(Records(X, Y), np.full((1, N), 2, dtype=np.int8), [0])


def test_as_many_seeds_as_models() -> None:
    with pytest.raises(ValueError, match="zip"):
        named_recipe("tree").fit_many(Records(X, Y), ROLES, [0])


def test_an_unknown_recipe_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no recipe named 'forrest'; did you mean 'forest'"):
        named_recipe("forrest")


def test_other_libraries_follow_the_same_interface() -> None:
    estimator = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)
    first, second = (SklearnRecipe("mine", estimator).fit(Records(TABLE, Y), 4) for _ in range(2))
    np.testing.assert_array_equal(answers(first, TABLE), answers(second, TABLE))


def test_steps_that_were_all_taken_are_no_news() -> None:
    recipe = named_recipe("network")
    noise = np.random.default_rng(1).integers(2, size=N)
    with pytest.warns(ConvergenceWarning):
        clone(recipe.estimator).fit(X, noise)
    assert recipe.fit(Records(X, noise), 0).predict(X).shape == (N,)


def test_a_recipe_without_randomness_needs_no_seed() -> None:
    model = SklearnRecipe("mine", DummyClassifier()).fit(Records(X, Y), 3)
    assert model.name == "DummyClassifier"


def test_training_on_everybody_is_fitting_one_model() -> None:
    records = Records(X, Y)
    one = train(named_recipe("tree"), records, 3)
    np.testing.assert_array_equal(
        one.predict_proba(X), named_recipe("tree").fit(records, 3).predict_proba(X)
    )


def test_what_draws_from_numpys_global_state_is_repeatable() -> None:
    from sklearn.model_selection import GridSearchCV, KFold

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    records = Records(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))
    search = GridSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2, 3, 5]}, cv=KFold(3, shuffle=True)
    )
    recipe = SklearnRecipe("search", search)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (recipe.fit(records, 7).estimator.cv_results_ for _ in range(2))
    np.testing.assert_array_equal(first["mean_test_score"], second["mean_test_score"])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
