from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from torch import nn

from leakscope.channels.outputs import Label, Probabilities
from leakscope.defenses import as_defense
from leakscope.defenses.memguard import Guard, GuardedModel, MemGuard
from leakscope.errors import InputError, MissingExtraError, ModelError
from leakscope.models import as_model
from leakscope.recipes import as_recipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
RECORDS = Records(X, np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 0.5]))
MEMBERS, REFERENCE, OTHERS = (RECORDS.take(np.arange(300)[part::3]) for part in range(3))
FOREST = RandomForestClassifier(20, random_state=0, n_jobs=1).fit(MEMBERS.X, MEMBERS.y)
MODEL = as_model(FOREST)
ROLES = np.array([[1, 2, 0] * 100], dtype=np.int8)
QUICK = MemGuard(1.0, epochs=20, steps=60)
SIDES = [MODEL.predict_proba(side.X) for side in (MEMBERS, OTHERS)]
ANSWERS = np.concatenate(SIDES)
IS_MEMBER = np.arange(200) < 100


@pytest.fixture(scope="module")
def guard() -> Guard:
    return QUICK.fitted(MODEL, MEMBERS, REFERENCE)


def test_the_inference_network_tells_members(guard: Guard) -> None:
    assert roc_auc_score(IS_MEMBER, guard.suspicion(ANSWERS)) > 0.7


def test_the_network_is_the_one_that_its_weights_say(guard: Guard) -> None:
    layers: list[nn.Module] = []
    for weights, biases in guard.layers:
        linear = nn.Linear(weights.shape[1], weights.shape[0]).double()
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights))
            linear.bias.copy_(torch.from_numpy(biases))
        layers += [linear, nn.ReLU()]
    network = nn.Sequential(*layers[:-1], nn.Sigmoid())
    given = torch.from_numpy(-np.sort(-ANSWERS, axis=1))
    expected = network(given).detach().numpy()[:, 0]
    np.testing.assert_allclose(guard.suspicion(ANSWERS), expected, rtol=1e-12)
    assert [len(biases) for _, biases in guard.layers] == [256, 128, 64, 1]


def test_answers_keep_their_label_and_mislead(guard: Guard) -> None:
    shown = guard.released(ANSWERS)
    np.testing.assert_array_equal(shown.argmax(axis=1), ANSWERS.argmax(axis=1))
    np.testing.assert_allclose(shown.sum(axis=1), 1.0)
    assert shown.min() >= 0
    changed = (shown != ANSWERS).any(axis=1)
    assert changed.mean() > 0.5
    before, after = guard.suspicion(ANSWERS), guard.suspicion(shown)
    # Where something was changed the network is less sure, and of the other side.
    assert (np.abs(after - 0.5) < np.abs(before - 0.5))[changed].all()
    assert ((after - 0.5) * (before - 0.5))[changed].max() <= 0
    assert ((after > 0.5) == IS_MEMBER).mean() < 0.5 < ((before > 0.5) == IS_MEMBER).mean()


@pytest.mark.slow
@pytest.mark.parametrize("distortion", [0.0, 0.05, 0.3])
def test_the_expected_distortion_stays_within_the_budget(guard: Guard, distortion: float) -> None:
    whole = np.abs(guard.released(ANSWERS) - ANSWERS).sum(axis=1)
    tight = Guard(distortion, guard.steps, guard.seed, guard.layers)
    shown = tight.released(ANSWERS)
    found = np.abs(shown - ANSWERS).sum(axis=1)
    # All or nothing for each answer, as often as the budget is of the distance.
    assert np.isin(found, [0.0]).sum() + (found == whole)[found > 0].sum() == 200
    chance = np.divide(distortion, whole, out=np.zeros(200), where=whole > 0).clip(max=1)
    deviation = np.sqrt((chance * (1 - chance)).sum())
    assert abs((found > 0).sum() - chance.sum()) <= 5 * deviation
    assert (chance * whole).max() <= distortion + 1e-12
    assert (distortion > 0) == (found > 0).any()


def test_the_same_question_has_the_same_answer(guard: Guard) -> None:
    tight = Guard(0.05, guard.steps, guard.seed, guard.layers)
    shown = tight.released(ANSWERS)
    np.testing.assert_array_equal(tight.released(ANSWERS), shown)
    for row in (3, 50, 150):
        alone = tight.released(ANSWERS[row : row + 1])[0]
        np.testing.assert_allclose(alone, shown[row], rtol=0, atol=1e-9)
    other = Guard(0.05, guard.steps, guard.seed + 1, guard.layers).released(ANSWERS)
    assert not np.array_equal(other, shown)


def test_long_batches_are_looked_at_in_parts(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = guard.released(ANSWERS)
    monkeypatch.setattr("leakscope.defenses.memguard.ROWS", 70)
    np.testing.assert_allclose(guard.released(ANSWERS), whole, rtol=0, atol=1e-9)


def test_what_cannot_be_misled_is_shown_as_it_is(guard: Guard) -> None:
    flat = tuple((0 * weights, 0 * biases + 3.0) for weights, biases in guard.layers)
    sure = Guard(2.0, 5, 0, flat)  # the same for whatever it is shown
    np.testing.assert_array_equal(sure.released(ANSWERS), ANSWERS)


def test_a_guard_is_a_release_around_channels(guard: Guard) -> None:
    seen = guard.wrap_channel(Probabilities()).observe(MODEL, OTHERS)
    np.testing.assert_array_equal(seen, guard.released(SIDES[1]))
    label = Label()
    assert guard.wrap_channel(label) is label
    assert str(guard) == "memguard:1"


def test_the_same_seed_gives_the_same_guard(guard: Guard) -> None:
    same, other = (QUICK.fitted(MODEL, MEMBERS, REFERENCE, seed) for seed in (0, 1))
    for one, two in zip(guard.layers, same.layers, strict=True):
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])
    assert not np.array_equal(guard.layers[0][0], other.layers[0][0])


def test_a_recipe_makes_guarded_models() -> None:
    recipe = QUICK.wrap_recipe(LogisticRegression(C=100.0))  # type: ignore[arg-type]
    assert recipe.name == "LogisticRegression+memguard:1"
    (model,) = recipe.fit_many(RECORDS, ROLES, [7])
    assert isinstance(model, GuardedModel)
    inside = model.wrapped
    again = QUICK.fitted(inside, MEMBERS, REFERENCE, 7)
    own = inside.predict_proba(OTHERS.X)
    np.testing.assert_array_equal(model.predict_proba(OTHERS.X), again.released(own))
    np.testing.assert_array_equal(model.predict(OTHERS.X), inside.predict(OTHERS.X))
    assert model.abilities == inside.abilities
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(OTHERS.X), model.predict_proba(OTHERS.X))


def test_other_parameters_stay_behind_the_same_guard() -> None:
    recipe = QUICK.wrap_recipe(as_recipe(LogisticRegression(), prepare=False))
    (model,) = recipe.fit_many(RECORDS, ROLES, [7])
    assert isinstance(model, GuardedModel)
    moved = model.with_parameters(model.parameters() + 1.0)
    assert isinstance(moved, GuardedModel)
    assert moved.defense is model.defense
    np.testing.assert_allclose(moved.parameters(), model.parameters() + 1.0)
    fixed = GuardedModel(as_model(FOREST.predict_proba, classes=np.arange(3)), model.defense)
    with pytest.raises(ModelError, match="cannot be had with other parameters"):
        fixed.with_parameters(np.zeros(3))


def test_it_needs_reference_records_before_anything_is_trained() -> None:
    class Never(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            pytest.fail("nothing is to be trained")

    roles = np.concatenate([ROLES, np.where(ROLES == 2, 0, ROLES)])
    with pytest.raises(InputError, match=r"'memguard:1' needs reference records, those of role 2"):
        QUICK.wrap_recipe(Never()).fit_many(RECORDS, roles, [1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(("role", "what"), [(1, "a member"), (0, "left out for the evaluation")])
def test_reference_records_are_nobody_else(role: int, what: str) -> None:
    place, reference = (int(np.flatnonzero(ROLES[0] == one)[0]) for one in (role, 2))
    rows, y = X.copy(), RECORDS.y.copy()
    rows[place], y[place] = rows[reference], y[reference]
    with pytest.raises(InputError, match=f"such as row {place}, equal a .*in D′ and {what}"):
        QUICK.wrap_recipe(LogisticRegression()).fit_many(Records(rows, y), ROLES, [1])  # type: ignore[arg-type]


def test_numbers_are_refused() -> None:
    model = as_model(LinearRegression().fit(X, X[:, 0]))
    with pytest.raises(ModelError, match="predicts numbers"):
        QUICK.fitted(model, MEMBERS, REFERENCE)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="'memguard' needs an optional package"):
        QUICK.fitted(MODEL, MEMBERS, REFERENCE)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"distortion": -0.1}, "distortion must be a finite number of at least 0, got -0.1"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        MemGuard(**options)


def test_it_is_read_as_it_is_written() -> None:
    assert as_defense("memguard") == as_defense("memguard:1") == MemGuard()
    assert str(MemGuard(0.25)) == "memguard:0.25"
