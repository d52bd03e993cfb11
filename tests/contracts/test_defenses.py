"""What every registered defense must hold to."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.channels.influence import explained
from leakscope.channels.oracle import LocalOracle
from leakscope.defenses import as_defense
from leakscope.errors import InputError
from leakscope.models import as_model
from leakscope.networks import MLP
from leakscope.protocols import Model, Recipe
from leakscope.recipes import as_recipe
from leakscope.recipes.fingerprint import fingerprint
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.registry import entries, lookup
from leakscope.trials import random_halves, run_trials

# Options that cost time and change nothing of what is asked here.
QUICK = {"memguard": {"epochs": 10, "steps": 30}}
DEFENSES = [
    replace(as_defense(entry.thing.example), **QUICK.get(entry.name, {}))
    for entry in entries("defense")
]
# For pairs, of which there are hundreds: shorter still, with other options than the examples'.
SHORT = {
    "early-stop": {"epoch": 1},
    "equal-compute": {"extra": 2},
    "prune": {"epochs": 1, "retrain": 1},
}
PAIRED = [replace(one, **SHORT.get(one.name, {})) for one in DEFENSES]
# Those whose training takes long, however little there is of it.
LONG = {"distill", "dpsgd", "memguard", "minmax"}
CHANNELS = [entry.thing() for entry in entries("channel")]
MARGIN = lookup("channel", "margin").thing()
GRADIENT = lookup("channel", "gradient-x-input").thing()
# What trials see of a model that comes without its records; explanations need them.
SEEN_IN_TRIALS = [one for one in DEFENSES if not hasattr(one, "around")]
AROUND_EXPLAINERS = [one for one in DEFENSES if hasattr(one, "around")]

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
RECORDS = Records(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))
# Of two classes the larger probability tells the other, and no release could hide it.
THREE = Records(X, np.digitize(X[:, 0] + rng.normal(size=80), [-0.5, 0.5]))
ROLES = random_halves(80, 4, seed=0)
# Half of those that are left out are of role 2 for defenses that need such records.
REFERRED = np.where((ROLES == 0) & (np.arange(80) % 2 == 0), 2, ROLES).astype(np.int8)
SEEDS = [3, 1, 4, 15]


def listed(*defenses, slow):
    marks = [pytest.mark.slow] if slow else []
    return pytest.param(*defenses, id="-".join(map(str, defenses)), marks=marks)


def each(defenses):
    return [listed(one, slow=one.name in LONG) for one in defenses]


@pytest.fixture(params=each(DEFENSES))
def defense(request):
    return request.param


def small(inputs, classes):
    return MLP([inputs, 32, classes])  # so many that a sixteenth of its weights does something


def plain(*defenses):
    """A recipe that all of these can be wrapped around."""
    if any(getattr(one, "networks", False) for one in defenses):
        # Long enough to be stopped early, also with the option doubled.
        epochs = max(2, *(2 * getattr(one, "epoch", 0) + 1 for one in defenses))
        # In double precision, so that also what hardly begins to act in few epochs shows.
        return TorchRecipe("plain", small, epochs=epochs, batch_size=20, dtype="float64")
    return as_recipe(LogisticRegression(), "plain")


def roles_for(*defenses):
    return REFERRED if any(getattr(one, "needs_reference", False) for one in defenses) else ROLES


def answers(recipe, *defenses, models=4):
    models = recipe.fit_many(RECORDS, roles_for(*defenses)[:models], SEEDS[:models])
    assert all(isinstance(model, Model) for model in models)
    return np.stack([model.predict_proba(X) for model in models])


@cache
def trained(defense):
    """What four models of the defended recipe answer, computed once for all that compare it."""
    return answers(defense.wrap_recipe(plain(defense)), defense)


def other(defense):
    """The same defense with its first option doubled."""
    option = fields(defense)[0].name
    return replace(defense, **{option: 2 * getattr(defense, option)})


def test_says_what_it_is(defense):
    assert defense.paper
    assert defense.example.partition(":")[0] == defense.name
    assert str(defense) == defense.example
    assert lookup("defense", defense.name).thing is type(defense)
    assert type(defense).__doc__.partition("\n")[0].endswith(".")


def test_changes_recipes_or_channels_and_leaves_the_others_alone(defense):
    recipe = plain(defense)
    wraps_recipes = defense.wrap_recipe(recipe) is not recipe
    wrapped = [channel for channel in CHANNELS if defense.wrap_channel(channel) is not channel]
    assert wraps_recipes != bool(wrapped)


def test_a_wrapped_recipe_trains_as_many_models_and_says_what_it_wraps(defense):
    before = plain(defense)
    recipe = defense.wrap_recipe(before)
    assert trained(defense).shape == (4, 80, 2)
    assert recipe.together >= 1
    if recipe is not before:
        assert fingerprint(recipe.recipe) == fingerprint(plain(defense))
        assert defense.name in recipe.name
        assert "plain" in recipe.name


def test_the_same_seed_gives_the_same_models_whatever_their_company(defense):
    recipe = defense.wrap_recipe(plain(defense))
    together = trained(defense)
    np.testing.assert_array_equal(together, answers(recipe, defense))
    if recipe.together == 1:
        alone = recipe.fit_many(RECORDS, roles_for(defense)[2:3], SEEDS[2:3])[0]
        np.testing.assert_array_equal(together[2], alone.predict_proba(X))


def test_the_global_state_of_chance_is_left_alone(defense):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    answers(defense.wrap_recipe(plain(defense)), defense)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_it_can_be_sent_to_a_worker(defense):
    recipe = defense.wrap_recipe(plain(defense))
    again = pickle.loads(pickle.dumps(recipe))
    assert fingerprint(again) == fingerprint(recipe)
    np.testing.assert_array_equal(answers(again, defense), trained(defense))
    assert pickle.loads(pickle.dumps(defense)) == defense


def test_the_fingerprint_changes_with_the_defense_and_its_options(defense):
    channel = next((c for c in CHANNELS if defense.wrap_channel(c) is not c), CHANNELS[0])
    wrapped = [one.wrap_recipe(plain(defense)) for one in (defense, other(defense))]
    channels = [one.wrap_channel(channel) for one in (defense, other(defense))]
    prints = {fingerprint((plain(defense), channel))}
    prints |= {fingerprint(pair) for pair in zip(wrapped, channels, strict=True)}
    assert len(prints) == 3


@pytest.mark.slow
@pytest.mark.parametrize("defense", each(SEEN_IN_TRIALS))
def test_trials_never_take_a_plain_model_for_a_defended_one(defense, tmp_path):
    # What is only around explanations is seen through one.
    explains = defense.wrap_channel(GRADIENT) is not GRADIENT

    def seen(*defenses):
        recipe, channel = plain(defense), GRADIENT if explains else MARGIN
        for one in defenses:
            recipe, channel = one.wrap_recipe(recipe), one.wrap_channel(channel)
        roles = roles_for(defense)
        trials = run_trials(recipe, THREE, roles, [channel], store=tmp_path, workers=1)
        return trials.observations[channel.name]

    first, second, third = seen(), seen(defense), seen(other(defense))
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)
    np.testing.assert_array_equal(seen(), first)
    np.testing.assert_array_equal(seen(defense), second)


ONCE: dict[tuple[str, bool], np.ndarray] = {}


def once_alone(recipe, *defenses):
    """What two models of this recipe answer; computed once for all pairs it is the same in."""
    key = fingerprint(recipe), roles_for(*defenses) is REFERRED
    if key not in ONCE:
        ONCE[key] = answers(recipe, *defenses, models=2)
    return ONCE[key]


def pairs():
    """All of them, of which those with networks are many and slow."""
    for inner, outer in product(PAIRED, PAIRED):
        trained = any(getattr(one, "networks", False) or one.name in LONG for one in (inner, outer))
        yield listed(inner, outer, slow=trained)


@pytest.mark.parametrize(("inner", "outer"), list(pairs()))
def test_two_combine_by_wrapping(inner, outer):
    once = inner.wrap_recipe(plain(inner, outer))
    try:
        both = outer.wrap_recipe(once)
    except InputError:  # before anything is trained
        return
    found = answers(both, inner, outer, models=2)
    assert found.shape == (2, 80, 2)
    if both is not once:
        before = once_alone(once, inner, outer)
        # Models that answer everybody alike, such as those of few weights, have nothing to hide.
        assert not np.array_equal(found, before) or not np.ptp(before, axis=1).any()


def test_a_budget_is_two_numbers_or_no_promise(defense):
    found = defense.budget(plain(defense), 40)
    assert found is None or (found[0] >= 0 and 0 <= found[1] < 1)


def test_nothing_is_promised_of_a_recipe_of_which_nothing_is_known(defense):
    class Unknown(Recipe):
        name = "unknown"

        def fit_many(self, records, roles, seeds):
            pytest.fail("a promise needs no model")

    assert defense.budget(Unknown(), 40) is None


@pytest.fixture(scope="module")
def explainer():
    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(RECORDS.X, RECORDS.y)
    return explained(as_model(fitted), RECORDS).explainer


def sound(safer, explainer, queries, k=4):
    """Whether what a defended explainer shows is what an oracle may say."""
    told = LocalOracle.of(safer, k=k).ask(queries)
    np.testing.assert_array_equal(told.predictions, explainer.predict(queries))
    np.testing.assert_array_equal(safer.explain(queries, k)[0], told.shown)
    there = told.shown >= 0
    np.testing.assert_array_equal(told.features[there], explainer.X[told.shown[there]])
    for rows, influence in safer.influence_chunks(queries):
        assert influence.shape == (len(queries[rows]), len(explainer.X))
    return told


@pytest.mark.parametrize("defense", AROUND_EXPLAINERS, ids=str)
@pytest.mark.parametrize("k", [1, 4, 80])
def test_a_defended_explainer_is_one_like_any_other(defense, k, explainer):
    before = explainer.X.copy()
    told = sound(defense.around(explainer), explainer, X, k)
    true, _ = explainer.explain(X, k)
    assert not np.array_equal(told.shown, true)
    np.testing.assert_array_equal(explainer.X, before)
    # One by one the queries have the answers they have together.
    safer = defense.around(explainer)
    alone = [safer.explain(X[row : row + 1], k)[0][0] for row in range(10)]
    np.testing.assert_array_equal(alone, told.shown[:10])


@pytest.mark.parametrize(
    ("inner", "outer"),
    # One of itself may be refused: a draw from a draw shows anybody.
    [pair for pair in product(AROUND_EXPLAINERS, AROUND_EXPLAINERS) if pair[0] is not pair[1]],
    ids=str,
)
def test_two_around_an_explainer_combine_in_either_order(inner, outer, explainer):
    both = sound(outer.around(inner.around(explainer)), explainer, X).shown
    turned = sound(inner.around(outer.around(explainer)), explainer, X).shown
    np.testing.assert_array_equal(both, turned)
    recorded = lookup("channel", "records").thing()
    wrapped = outer.wrap_channel(inner.wrap_channel(recorded))
    assert wrapped.channel.channel is recorded
