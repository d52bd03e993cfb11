from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.comparing.averaging import Figure
from leakscope.comparing.baselines import EQUAL_ACCURACY, EQUAL_COMPUTE, baselines
from leakscope.comparing.defending import around, as_combination
from leakscope.comparing.judging import Judged
from leakscope.networks import MLP
from leakscope.recipes import as_recipe
from leakscope.recipes.torch import TorchRecipe

STILL = Figure(0.5, np.zeros(1), 1.0)


def small(inputs, classes):
    return MLP([inputs, 6, classes])


NETWORK = TorchRecipe("small", small, epochs=20, stack=1)


def found(figures, recipe=NETWORK):
    """What is added beside defenses with these (epochs, train accuracy) of each seed."""
    compared = [around(as_combination(name), recipe, 40) for name in figures]
    judged = {
        name: [
            Judged(name, {"epochs": epochs, "train_accuracy": accuracy}, STILL, STILL, {})
            for epochs, accuracy in rows
        ]
        for name, rows in figures.items()
    }
    return baselines(compared, judged, recipe, 40)


def test_a_training_defense_gets_both():
    made, said = found({"none": [(20, 1.0)] * 2, "prune:4": [(59, 0.91), (59, 0.94)]})
    assert [one.name for one in made] == ["equal-compute:39", "early-stop (accuracy 0.925)"]
    assert made[0].recipe.recipe is NETWORK
    assert made[1].recipe.stop_at_accuracy == 0.925
    assert [(one.kind, one.defense, one.beside) for one in said] == [
        (EQUAL_COMPUTE, "equal-compute:39", ("prune:4",)),
        (EQUAL_ACCURACY, "early-stop (accuracy 0.925)", ("prune:4",)),
    ]
    assert said[0].to_dict()["beside"] == ["prune:4"]


def test_one_baseline_stands_beside_several_and_is_not_made_twice():
    rows = [(59, 0.9)]
    made, said = found(
        {
            "none": [(20, 1.0)],
            "prune:4": rows,
            "prune:8": rows,
            "equal-compute:39": [(59, 1.0)],
        }
    )
    assert [one.name for one in made] == ["early-stop (accuracy 0.9)"]
    assert [(one.defense, one.beside) for one in said] == [
        ("equal-compute:39", ("prune:4", "prune:8")),
        ("early-stop (accuracy 0.9)", ("prune:4", "prune:8")),
    ]


def test_what_does_not_change_the_training_gets_none():
    figures = {"none": [(20, 1.0)], "early-stop:5": [(5, 0.8)], "noise:1": [(20, 0.7)]}
    assert found(figures) == ([], [])
    assert found(figures | {"round:1": [(20, 1.0)]}) == ([], [])


@pytest.mark.parametrize(
    ("row", "reasons"),
    [
        ((20, 1.0), ["no more epochs than none", "which none does not pass"]),
        ((None, 0.0), ["is not known", "which none does not pass"]),
    ],
)
def test_where_there_can_be_none_the_reason_is_told(row, reasons):
    made, said = found({"none": [(20, 1.0)], "l2:0.1": [row]})
    assert made == []
    for one, reason in zip(said, reasons, strict=True):
        assert one.defense is None
        assert reason in one.reason


def test_an_estimator_has_no_epochs():
    recipe = as_recipe(LogisticRegression(), "plain")
    made, (said,) = found({"none": [(None, 1.0)], "l2:0.1": [(None, 0.9)]}, recipe)
    assert made == []
    assert said.kind == f"{EQUAL_COMPUTE}, {EQUAL_ACCURACY}"
    assert said.reason == "The recipe 'plain' has no epochs to add or to leave out."


def test_a_baseline_that_the_recipe_refuses_is_told():
    stopping = TorchRecipe("stopping", small, epochs=20, stack=1, stop_at_accuracy=0.8)
    made, said = found({"none": [(20, 1.0)], "l2:0.1": [(20, 0.9)]}, stopping)
    assert made == []
    assert "would not stop the recipe 'stopping' early" in said[1].reason
