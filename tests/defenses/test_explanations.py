from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.channels.influence import RecordExplanations, explained
from leakscope.channels.outputs import Loss
from leakscope.defenses.crowd import CrowdedExplanations
from leakscope.defenses.drawn import ExponentialExplanations
from leakscope.defenses.explanations import SaferExplanations, blocks, spreads
from leakscope.defenses.refusal import RefusedExplanations
from leakscope.errors import InputError
from leakscope.models import as_model
from leakscope.records import Records

Make = Callable[..., Any]
CROWD, REFUSE = CrowdedExplanations(3), RefusedExplanations()
DRAW = ExponentialExplanations(30.0, key="tests")
OTHERS = RefusedExplanations(0.5, show_others=True)


@pytest.mark.parametrize("refusals", [[REFUSE], [OTHERS], [REFUSE, OTHERS]], ids=str)
def test_the_order_in_which_they_are_wrapped_does_not_matter(
    linear: Make, refusals: list[Any]
) -> None:
    explainer = linear()
    answers = []
    for order in permutations([CROWD, DRAW, *refusals]):
        safer = explainer
        for defense in order:
            safer = defense.around(safer)
        answers.append(safer.explain(explainer.X, 4)[0])
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    assert not np.array_equal(answers[0], DRAW.around(explainer).explain(explainer.X, 4)[0])


def test_only_a_refusal_stays_outside_a_draw(linear: Make) -> None:
    safer = CROWD.around(OTHERS.around(REFUSE.around(DRAW.around(linear()))))
    kinds = []
    while hasattr(safer, "explainer"):
        kinds.append(type(safer).__name__)
        safer = safer.explainer
    assert kinds == ["Refusing", "Drawn", "Crowded", "Sidestepping"]


@pytest.mark.parametrize("k", [0, 31, 2.0])
@pytest.mark.parametrize("defense", [CROWD, DRAW, REFUSE, OTHERS], ids=str)
def test_no_more_records_are_shown_than_there_are(linear: Make, defense: Any, k: Any) -> None:
    explainer = linear()
    said = rf"The option k must be a whole number from 1 to 30, got {k}"
    with pytest.raises(InputError, match=said):
        defense.around(explainer).explain(explainer.X, k)


def test_two_of_a_kind_both_hold(linear: Make) -> None:
    explainer = linear()
    few, many = CrowdedExplanations(2, 0.7), CrowdedExplanations(8, 1.5)
    both = many.around(few.around(explainer))
    shown, _ = both.explain(explainer.X, 30)
    alone = few.around(explainer).alone | many.around(explainer).alone
    assert set(shown[0].tolist()) - {-1} == set(np.flatnonzero(~alone))


def test_predictions_and_records_are_those_of_the_model(linear: Make) -> None:
    explainer = linear()
    for defense in (CROWD, DRAW, REFUSE, OTHERS):
        safer = defense.around(explainer)
        assert safer.X is explainer.X
        assert safer.y is explainer.y
        np.testing.assert_array_equal(safer.predict(explainer.X), explainer.predict(explainer.X))


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
    return explained(as_model(fitted), Records(X, y))


def test_a_channel_of_records_shows_less(model: Any) -> None:
    records = Records(model.explainer.X, model.explainer.y)
    channel = RecordExplanations(k=3, show="absolute")
    safer = REFUSE.wrap_channel(channel)
    assert isinstance(safer, SaferExplanations)
    assert (safer.k, safer.show, safer.name) == (3, "absolute", "records")
    assert safer.channel is channel
    assert safer.width(model) == channel.width(model)
    plain, seen = channel.observe(model, records), safer.observe(model, records)
    own = plain[:, 0] == 0
    assert 0 < own.sum() < 60
    assert (seen[own, 0] > 0).all()
    np.testing.assert_array_equal(seen[~own], plain[~own])


def test_channels_are_wrapped_one_around_the_other(model: Any) -> None:
    channel = REFUSE.wrap_channel(CROWD.wrap_channel(RecordExplanations()))
    assert isinstance(channel, SaferExplanations)
    queries = model.explainer.X
    expected = REFUSE.around(CROWD.around(model.explainer)).explain(queries, 5)[0]
    np.testing.assert_array_equal(channel.explainer_of(model).explain(queries, 5)[0], expected)


def test_other_channels_and_all_recipes_are_left_alone() -> None:
    channel, recipe = Loss(), object()
    for defense in (CROWD, DRAW, REFUSE):
        assert defense.wrap_channel(channel) is channel
        assert defense.wrap_recipe(recipe) is recipe  # type: ignore[type-var]


def test_blocks_hold_everything_once() -> None:
    assert [range(10)[one] for one in blocks(10, 2**18)] == [range(4), range(4, 8), range(8, 10)]
    assert len(list(blocks(3, 2**21))) == 3
    assert list(blocks(0, 5)) == []


def test_what_has_no_spread_is_not_divided() -> None:
    np.testing.assert_allclose(spreads(np.array([[1.0, 5.0], [3.0, 5.0]])), [1.0, 1.0])
    np.testing.assert_allclose(spreads(np.array([[0.0, 5.0], [4.0, 5.0]])), [2.0, 1.0])
