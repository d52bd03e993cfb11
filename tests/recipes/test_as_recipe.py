from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from leakscope.errors import InputError, UnknownNameError
from leakscope.models import as_model
from leakscope.protocols import Model, Recipe
from leakscope.recipes import as_recipe, named_recipe, recipe_of, train
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


class Constant(Recipe):
    name = "constant"

    def fit_many(self, records: Records, roles: Any, seeds: Any) -> list[Model]:
        return [as_model(lambda X: np.full(len(X), 0.5)) for _ in seeds]


class Half:
    name = "half"

    def fit_many(self, records: Records, roles: Any, seeds: Any) -> list[Model]:
        return []


def test_a_recipe_is_taken_as_it_is() -> None:
    for recipe in (Constant(), named_recipe("tree")):
        assert as_recipe(recipe) is recipe
        assert as_recipe(recipe, "another name") is recipe


def test_a_subclass_need_only_say_its_name_and_fit() -> None:
    recipe = as_recipe(Constant())
    assert (recipe.name, recipe.together) == ("constant", 1)
    model = train(recipe, Records(X, Y), 0)
    np.testing.assert_array_equal(model.predict_proba(X), 0.5)


def test_a_name_is_a_registered_recipe() -> None:
    assert as_recipe("ridge").name == "ridge"
    with pytest.raises(UnknownNameError, match="did you mean 'ridge'"):
        as_recipe("rigde")


def test_an_estimator_is_cloned_whether_it_is_fitted_or_not() -> None:
    estimator = DecisionTreeClassifier(max_depth=2)
    for given in (estimator, DecisionTreeClassifier(max_depth=2).fit(X, Y)):
        recipe = as_recipe(given)
        assert isinstance(recipe, SklearnRecipe)
        assert (recipe.name, recipe.prepare) == ("DecisionTreeClassifier", None)
        assert recipe.estimator is not given
        assert recipe.estimator.max_depth == 2
        with pytest.raises(NotFittedError):
            check_is_fitted(recipe.estimator)
    assert as_recipe(estimator, "mine").name == "mine"


class Stubborn(DecisionTreeClassifier):
    def __init__(self, max_depth: int = 1) -> None:
        super().__init__(max_depth=max_depth + 1)


@pytest.mark.parametrize(
    ("thing", "name", "said"),
    [
        (7, None, "The recipe is a int, not an estimator"),
        (7, "a:b", "The recipe 'a:b' is a int, not an estimator"),
        (DecisionTreeClassifier, None, "is the class DecisionTreeClassifier; pass an instance"),
        (Constant, None, "is the class Constant; pass an instance"),
        (Half(), None, "is a Half without together; make its class a subclass of leakscope"),
        (Stubborn(), "s", "The recipe 's' is a Stubborn that cannot be cloned (Cannot clone"),
    ],
)
def test_what_is_no_recipe_is_one_sentence(thing: Any, name: str | None, said: str) -> None:
    with pytest.raises(InputError) as caught:
        as_recipe(thing, name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_recipe_of_a_model_is_its_clone_without_preparation() -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=3.0)).fit(X, Y)
    recipe = recipe_of(as_model(pipeline))
    assert isinstance(recipe, SklearnRecipe)
    assert (recipe.name, recipe.prepare) == ("LogisticRegression", False)
    assert recipe.estimator[-1].C == 3.0
    again = train(recipe, Records(X, Y), 0)
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))


def test_other_models_have_no_recipe() -> None:
    assert recipe_of(as_model(lambda X: X[:, 0])) is None


def test_a_model_whose_estimator_cannot_be_cloned_is_one_sentence() -> None:
    with pytest.raises(InputError, match="The model is a Stubborn that cannot be cloned"):
        recipe_of(as_model(Stubborn().fit(X, Y)))
