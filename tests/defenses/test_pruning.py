from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leakscope.defenses import as_defense
from leakscope.defenses.pruning import (
    BudgetSearch,
    Candidate,
    Pruning,
    search_among,
    search_budgets,
)
from leakscope.errors import InputError, ModelError
from leakscope.models.torch import TorchModel
from leakscope.networks import MLP
from leakscope.networks.pruning import prunable
from leakscope.networks.stages import Stage
from leakscope.networks.training import Hooks, train
from leakscope.protocols import Model, Recipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 5))
RECORDS = Records(X, (X[:, 0] * X[:, 1] > 0).astype(int))
ROLES = np.repeat(np.array([1, 2, 0], dtype=np.int8), 50)


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 16, 8, classes])


RECIPE = TorchRecipe("mlp", mlp, epochs=6, batch_size=10, lr=0.01)
SHORT = Pruning(4, epochs=2, retrain=2)


def left(model: Model) -> dict[str, int]:
    assert isinstance(model, TorchModel)
    return {path: int(one.count_nonzero()) for path, one in prunable(model.module).items()}


def trained(recipe: Recipe, seed: int = 0) -> Model:
    (model,) = recipe.fit_many(RECORDS, ROLES[None], [seed])
    return model


def test_a_pruned_network_has_as_many_weights_as_it_may() -> None:
    recipe = SHORT.wrap_recipe(RECIPE)
    model = trained(recipe)
    # 80 + 128 + 16 weights; the last layer keeps half, and the first what half of them leaves.
    assert (
        left(model)
        == SHORT.kept(mlp(5, 2))
        == {
            "layers.linear1": 20,
            "layers.linear2": 28,
            "layers.linear3": 8,
        }
    )
    again = trained(pickle.loads(pickle.dumps(recipe)))
    assert isinstance(model, TorchModel)
    assert isinstance(again, TorchModel)
    np.testing.assert_array_equal(model.parameters(), again.parameters())


def test_the_pruned_module_is_a_plain_one_with_the_same_answers() -> None:
    """Nothing of the pruning is left on it: a network as the factory makes it takes its weights."""
    model = trained(SHORT.wrap_recipe(RECIPE))
    assert isinstance(model, TorchModel)
    fresh = mlp(5, 2)
    things = [
        [sorted(vars(thing)) for thing in (*one.modules(), *one.parameters())]
        for one in (model.module, fresh)
    ]
    assert things[0] == things[1]
    assert not any(
        vars(thing)[hooks]
        for thing in model.module.modules()
        for hooks in vars(thing)
        if hooks.endswith("_hooks")
    )
    assert all(not one._backward_hooks for one in model.module.parameters())
    fresh.load_state_dict(model.module.state_dict())
    inputs = torch.from_numpy(X).float()
    assert torch.equal(fresh.eval()(inputs), model.module(inputs))


def test_what_the_recipe_did_before_is_done_first() -> None:
    parts: list[int] = []

    def course(stage: Stage) -> None:
        stage.train(epochs=1)
        stage.train(epochs=1)
        parts.append(len(stage.parts))

    made = SHORT.wrap_recipe(TorchRecipe("mlp", mlp, epochs=6, course=course))
    assert left(trained(made)) == SHORT.kept(mlp(5, 2))
    assert parts == [2]


def test_the_hooks_of_the_recipe_are_in_force_while_it_is_pruned() -> None:
    epochs: list[int] = []
    hooks = Hooks(on_epoch=lambda module, epoch, figures: epochs.append(epoch))
    trained(SHORT.wrap_recipe(TorchRecipe("mlp", mlp, epochs=3, hooks=hooks)))
    assert epochs == [1, 2, 3, *[1, 2] * 4]


def test_what_follows_does_not_bring_the_weights_back() -> None:
    recipe: Any = RECIPE
    for defense in (SHORT, as_defense("equal-compute:2"), as_defense("distill:4")):
        recipe = defense.wrap_recipe(recipe)
    assert left(trained(recipe)) == SHORT.kept(mlp(5, 2))


def test_pruning_twice_leaves_the_fewer() -> None:
    few, many = Pruning(8, epochs=1, retrain=1), Pruning(2, epochs=1, retrain=1)
    assert left(trained(many.wrap_recipe(few.wrap_recipe(RECIPE)))) == few.kept(mlp(5, 2))
    counts = left(trained(few.wrap_recipe(many.wrap_recipe(RECIPE))))
    assert counts == few.kept(mlp(5, 2))


def test_budgets_may_be_given() -> None:
    pruning = Pruning(budgets={"layers.linear2": 10}, epochs=1, retrain=1)
    assert left(trained(pruning.wrap_recipe(RECIPE)))["layers.linear2"] == 10
    assert str(pruning) == "prune (10 weights of 1 layer; epochs 1; retrain 1)"
    assert hash(pruning) == hash(Pruning(epochs=1, retrain=1))
    assert pruning != Pruning(epochs=1, retrain=1)


def test_it_is_named_as_it_is_written() -> None:
    assert str(as_defense("prune:16")) == str(as_defense("prune")) == "prune:16"
    assert as_defense("prune:2.5") == Pruning(2.5)
    assert str(Pruning(4, protect=False, rhos=(0.01, 0.1))) == (
        "prune:4 (ends not protected; rho 0.01, 0.1)"
    )
    two = Pruning(budgets={"a": 1, "b": 4})
    assert str(two) == "prune (5 weights of 2 layers)"
    assert Pruning().budget(RECIPE, 50) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ratio": 0.5}, "ratio must be a finite number of at least 1, got 0.5"),
        ({"rate": 0}, "rate must be a finite number above 0, got 0"),
        ({"retrain_rate": -1}, "retrain_rate must be a finite number above 0, got -1"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"retrain": -1}, "retrain must be a whole number of at least 0, got -1"),
        ({"rhos": (0.1, 0)}, "rhos must be a finite number above 0, got 0"),
        ({"rhos": ()}, r"rhos must be one or more rising numbers, got \(\)"),
        ({"rhos": (0.1, 0.01)}, r"rhos must be one or more rising numbers, got \(0.1, 0.01\)"),
        ({"budgets": {}}, "budgets names no layer"),
        ({"budgets": {"conv": 1.5}}, r"budgets\['conv'\] must be a whole number .* got 1.5"),
    ],
)
def test_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Pruning(**options)


@pytest.mark.parametrize(
    ("pruning", "said"),
    [
        (Pruning(budgets={"layers.linear3": 17}), "'layers.linear3' is 17, and it has 16 weights"),
        (Pruning(budgets={"fc": 1}), "for the layer 'fc', which the network has not"),
        (Pruning(300), "A ratio of 300 leaves none of 224 weights"),
    ],
)
def test_impossible_budgets_are_refused_before_any_training(pruning: Pruning, said: str) -> None:
    def course(stage: Stage) -> None:
        pytest.fail("it was trained")

    recipe = pruning.wrap_recipe(TorchRecipe("mlp", mlp, course=course))
    with pytest.raises(InputError, match=said):
        trained(recipe)


def test_a_loop_with_a_promise_of_its_own_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"'prune:4.*' needs a penalty and further epochs, for whi"
    ):
        SHORT.wrap_recipe(TorchRecipe("mlp", mlp, loop=train))


# -------------------------------------------------------------------------------------- search


def constant(model: Model, members: Records, reference: Records) -> float:
    """A gain that falls with the number of weights."""
    return sum(left(model).values()) / 1000


def test_every_candidate_is_there_with_its_figures() -> None:
    sides: list[tuple[list[Any], list[Any]]] = []

    def gain(model: Model, members: Records, reference: Records) -> float:
        sides.append((members.y.tolist(), reference.y.tolist()))
        return constant(model, members, reference)

    found = search_budgets(
        RECIPE, RECORDS, ROLES, 3, [2, 8], gain=gain, tolerance=1.0, pruning=SHORT
    )
    assert sides == [(RECORDS.y[:50].tolist(), RECORDS.y[50:100].tolist())] * 3
    assert found.baseline.pruning is None
    assert found.baseline.weights == 224
    assert [one.weights for one in found.candidates] == [112, 28]
    assert [one.gain for one in found.candidates] == [0.112, 0.028]
    for one, recipe in zip(
        (found.baseline, *found.candidates),
        (RECIPE, *(Pruning(r, 2, 2).wrap_recipe(RECIPE) for r in (2, 8))),
        strict=True,
    ):
        model = trained(recipe, seed=3)
        assert one.accuracy == np.mean(model.predict(X[50:100]) == RECORDS.y[50:100])
    assert found.allowed == found.candidates
    assert found.chosen is found.candidates[1]
    assert found.candidates[1].pruning == Pruning(8, epochs=2, retrain=2)


def test_the_same_models_are_judged_on_some_of_the_records() -> None:
    """Trained on all members whatever they are judged on."""
    sides: list[tuple[list[Any], list[Any]]] = []

    def gain(model: Model, members: Records, reference: Records) -> float:
        sides.append((members.y.tolist(), reference.y.tolist()))
        return len(members) / 1000

    everyone, some = np.ones(150, dtype=bool), np.arange(150) % 5 > 1
    choices = [Pruning(ratio, 2, 2) for ratio in (2, 8)]
    whole, part = search_among(
        RECIPE, RECORDS, ROLES, 3, choices, [everyone, some], gain=gain, tolerance=0.5
    )
    pair = [
        (RECORDS.y[mask & (ROLES == 1)].tolist(), RECORDS.y[mask & (ROLES == 2)].tolist())
        for mask in (everyone, some)
    ]
    assert sides == pair * 3
    assert whole == search_budgets(RECIPE, RECORDS, ROLES, 3, choices, gain=gain, tolerance=0.5)
    assert [one.gain for one in (part.baseline, *part.candidates)] == [0.03] * 3
    assert [one.weights for one in part.candidates] == [one.weights for one in whole.candidates]
    judged = some & (ROLES == 2)
    for one, recipe in zip(part.candidates, choices, strict=True):
        model = trained(recipe.wrap_recipe(RECIPE), seed=3)
        assert one.accuracy == np.mean(model.predict(X[judged]) == RECORDS.y[judged])
    with pytest.raises(InputError, match=r"no reference records \(role 2\) to measure"):
        search_among(UNTRAINED, RECORDS, ROLES, 0, choices, [ROLES == 1], gain=gain)


def test_more_than_the_ratio_may_be_searched_for() -> None:
    slow = Pruning(4, epochs=1, retrain=1, rate=0.1, retrain_rate=0.01)
    found = search_budgets(
        RECIPE, RECORDS, ROLES, 0, [slow, 8], gain=constant, tolerance=1.0, pruning=SHORT
    )
    assert [one.pruning for one in found.candidates] == [slow, Pruning(8, epochs=2, retrain=2)]
    assert [one.weights for one in found.candidates] == [56, 28]


def test_the_rates_are_those_of_the_rounds_and_of_the_retraining() -> None:
    rates: list[float] = []

    def note(module: nn.Module, optimizer: torch.optim.Optimizer, step: int, loss: float) -> None:
        if step == 1:
            rates.append(optimizer.param_groups[0]["lr"])

    pruning = Pruning(4, epochs=1, retrain=1, rate=0.5, retrain_rate=0.25)
    trained(pruning.wrap_recipe(TorchRecipe("mlp", mlp, lr=0.01, hooks=Hooks(on_batch=note))))
    assert rates == pytest.approx([0.01, 0.005, 0.005, 0.005, 0.0025])
    assert str(pruning) == "prune:4 (epochs 1; retrain 1; rate 0.5, then 0.25)"


def candidate(gain: float, accuracy: float) -> Candidate:
    return Candidate(Pruning(), 10, gain, accuracy)


def test_a_ruined_model_is_not_chosen() -> None:
    baseline = Candidate(None, 100, -1.0, 0.9)
    ruined, worse, good = candidate(-1.38, 0.5), candidate(-1.2, 0.89), candidate(-1.1, 0.92)
    found = BudgetSearch(baseline, (ruined, worse, good), 0.01)
    assert found.allowed == (worse, good)
    assert found.chosen is worse
    assert BudgetSearch(baseline, (ruined, worse, good), 0.005).chosen is good
    assert BudgetSearch(baseline, (ruined,), 0.1).chosen is None
    equal = candidate(-1.2, 0.95)
    assert BudgetSearch(baseline, (worse, equal), 0.01).chosen is equal


def test_a_gain_below_nothing_is_nothing() -> None:
    """An inference model that overfits gains less than one that says ½ of everybody."""
    found = search_budgets(
        RECIPE, RECORDS, ROLES, 0, [4], gain=lambda *_: -2.0, tolerance=1, pruning=SHORT
    )
    assert found.candidates[0].gain == found.baseline.gain == -math.log(4)


def search(**changes: Any) -> BudgetSearch:
    options: dict[str, Any] = {
        "recipe": RECIPE,
        "records": RECORDS,
        "roles": ROLES,
        "seed": 0,
        "ratios": [4],
        "gain": constant,
    }
    return search_budgets(**options | changes)


def repeated(row: int, other: int) -> Records:
    """The records, with one of them in two places."""
    index = np.arange(150)
    index[row] = other
    return RECORDS.take(index)


def never(stage: Stage) -> None:
    pytest.fail("it was trained")


UNTRAINED = TorchRecipe("mlp", mlp, course=never)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ratios": []}, "no ratio to try"),
        ({"ratios": [4, 300]}, "A ratio of 300 leaves none of 224 weights"),
        ({"ratios": [4, 0.5]}, "ratio must be a finite number of at least 1, got 0.5"),
        ({"tolerance": -0.1}, "tolerance must be a finite number of at least 0, got -0.1"),
        ({"roles": ROLES[None]}, r"roles of 150 records have the shape \(1, 150\)"),
        ({"roles": ROLES % 2}, r"no reference records \(role 2\) to measure the gain on"),
        ({"roles": ROLES * 2}, r"no members \(role 1\) to measure the gain on"),
        (
            {"records": repeated(0, 60)},
            r"1 of 50 records of role 1, such as row 0, equal .* in D′ and a member; give all",
        ),
        (
            {"records": repeated(120, 60)},
            r"1 of 50 records of role 0, such as row 120, .* in D′ and left out for the evaluation",
        ),
        (
            {"records": Records(X, RECORDS.y, unit=[*range(149), 60])},
            r"1 of 50 records of role 0, such as row 149",
        ),
        ({"records": Records(X, X[:, 0])}, "predicts numbers; prune to a chosen ratio"),
    ],
)
def test_a_search_is_refused_before_any_training(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        search(**{"recipe": UNTRAINED} | changes)


def test_a_gain_that_is_no_number_is_refused() -> None:
    with pytest.raises(ModelError, match="gain of an inference model is nan with no pruning"):
        search(gain=lambda *_: math.nan)


def test_torch_is_left_as_it_was() -> None:
    state = torch.get_rng_state()
    trained(SHORT.wrap_recipe(RECIPE))
    assert torch.equal(state, torch.get_rng_state())
