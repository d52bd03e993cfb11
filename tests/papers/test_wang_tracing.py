from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from leakscope.defenses.minmax import MinMax
from leakscope.defenses.pruning import Pruning
from leakscope.models import Remembering
from leakscope.papers.wang_networks import build
from leakscope.papers.wang_tracing import LossCurve, TracedModel, TracedRecipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

RECIPE = TorchRecipe("small", partial(build, "mlp-256"), epochs=3, stack=1)


@pytest.fixture(scope="module")
def records() -> Records:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    return Records(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 1))


ROLES = np.repeat([1, 2, 0], 30).astype(np.int8)[None]


@pytest.mark.parametrize(
    ("defense", "epochs"), [(None, 3), (Pruning(4, epochs=2, retrain=1), 10), (MinMax(0.3), 3)]
)
def test_the_last_loss_is_that_of_the_same_model(
    records: Records, defense: Pruning | MinMax | None, epochs: int
) -> None:
    recipe = RECIPE if defense is None else defense.wrap_recipe(RECIPE)
    assert isinstance(recipe, TorchRecipe)
    (model,) = TracedRecipe("traced", recipe).fit_many(records, ROLES, [7])
    (plain,) = recipe.fit_many(records, ROLES, [7])
    assert isinstance(model, TracedModel)
    np.testing.assert_array_equal(model.parameters(), plain.parameters())
    members = records.take(np.flatnonzero(ROLES[0] == 1))
    assert model.losses.shape == (epochs,)
    # Without the penalties of the defense, which the loss in training has.
    assert model.losses[-1] == pytest.approx(plain.loss(members.X, members.y).mean(), rel=1e-5)
    assert model.losses[2] < model.losses[0]


def test_the_curve_is_stored_with_the_model_and_shown(records: Records) -> None:
    (model,) = TracedRecipe("traced", RECIPE).fit_many(records, ROLES, [0])
    again = pickle.loads(pickle.dumps(model))
    channel = LossCurve()
    for one in (model, again, Remembering(again)):
        assert channel.width(one) == 3
        np.testing.assert_array_equal(channel.observe(one, records), [model.losses])
    np.testing.assert_array_equal(again.predict(records.X), model.predict(records.X))
