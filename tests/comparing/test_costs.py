from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from leakscope.comparing.costs import (
    UNKNOWN,
    Cost,
    Costed,
    Measured,
    alone,
    counted,
    seconds_to_predict,
    size_of,
)
from leakscope.defenses import as_defense
from leakscope.defenses.pruning import Pruning
from leakscope.models import Remembering, as_model
from leakscope.networks import MLP
from leakscope.protocols import Recipe
from leakscope.recipes import as_recipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.trials.packing import pack, unpack


def small(inputs, classes):
    return MLP([inputs, 6, classes])


NETWORK = TorchRecipe("small", small, epochs=3, batch_size=20, stack=1)


@pytest.fixture
def roles(pool):
    return (np.arange(len(pool)) % 3 == 0).astype(np.int8)[None]


def told(recipe, pool, roles):
    (model,) = Measured.of(recipe).fit_many(pool, roles, [5])
    ((seconds, epochs),) = Cost().observe(Remembering(model), pool)
    return model, seconds, epochs


def test_a_network_tells_its_epochs_and_comes_out_the_same(pool, roles):
    model, seconds, epochs = told(NETWORK, pool, roles)
    assert seconds > 0
    assert epochs == 3
    plain = NETWORK.fit_many(pool, roles, [5])[0]
    np.testing.assert_array_equal(model.predict_proba(pool.X), plain.predict_proba(pool.X))


@pytest.mark.parametrize(
    ("defense", "epochs"),
    [(as_defense("early-stop:2"), 2), (Pruning(2, epochs=1, retrain=2), 3 + 3 + 2),
     (as_defense("equal-compute:4"), 7), (as_defense("noise:0.1"), 3)],
    ids=str,
)  # fmt: skip
def test_all_parts_of_a_training_count(defense, epochs, pool, roles):
    recipe = defense.wrap_recipe(NETWORK)
    model, _, counted_epochs = told(recipe, pool, roles)
    assert counted_epochs == epochs
    plain = recipe.fit_many(pool, roles, [5])[0]
    np.testing.assert_array_equal(model.predict_proba(pool.X), plain.predict_proba(pool.X))


def test_an_estimator_has_no_epochs(pool, roles):
    _, seconds, epochs = told(as_recipe(LogisticRegression(), "plain"), pool, roles)
    assert seconds > 0
    assert epochs == UNKNOWN
    stronger = as_defense("l2:0.1").wrap_recipe(as_recipe(LogisticRegression(), "plain"))
    assert counted(stronger, []) is stronger


def test_what_cannot_be_looked_into_is_left_alone():
    class Around(Recipe):
        name = "around"
        recipe = NETWORK

        def fit_many(self, records, roles, seeds):
            return []

    own = Around()
    assert counted(own, []) is own


def test_a_model_is_stored_without_what_it_cost(pool, roles):
    (model,) = Measured.of(NETWORK).fit_many(pool, roles, [5])
    assert isinstance(model, Costed)
    (again,) = Measured.of(NETWORK).fit_many(pool, roles, [5])
    assert b"".join(pack(model)) == b"".join(pack(again))
    stored = unpack(b"".join(pack(model)))
    assert not isinstance(stored, Costed)
    np.testing.assert_array_equal(Cost().observe(Remembering(stored), pool), [[UNKNOWN] * 2])
    assert Cost().width(stored) == 2


def test_a_class_that_no_member_has_gets_a_column(pool):
    roles = (pool.y == 1).astype(np.int8)
    roles[np.flatnonzero(pool.y == 0)[:5]] = 2
    (model,) = Measured.of(as_recipe(DecisionTreeClassifier())).fit_many(pool, roles[None], [0])
    assert model.predict_proba(pool.X).shape == (len(pool), 2)


def test_networks_are_trained_by_themselves():
    assert alone(TorchRecipe("many", small)).together == 1
    tree = as_recipe(DecisionTreeClassifier())
    assert alone(tree) is tree


def test_sizes(pool, roles):
    (network,) = NETWORK.fit_many(pool, roles, [5])
    weights = 12 * 6 + 6 + 6 * 2 + 2
    assert size_of(network) == 4 * weights
    wide = TorchRecipe("wide", _wide, epochs=1, stack=1)
    pruned = Pruning(16, epochs=1, retrain=1).wrap_recipe(wide)
    dense, sparse = (size_of(one.fit_many(pool, roles, [5])[0]) for one in (wide, pruned))
    assert sparse < dense / 4
    tree = as_model(DecisionTreeClassifier().fit(pool.X, pool.y))
    assert size_of(tree) == len(b"".join(pack(tree)))

    class Local(DecisionTreeClassifier):
        """Cannot be written to a file."""

    assert size_of(as_model(Local().fit(pool.X, pool.y))) is None
    assert 0 < seconds_to_predict(tree, pool.X) < 10


def _wide(inputs, classes):
    return MLP([inputs, 400, classes])
