from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from leakscope.errors import NotApplicableError
from leakscope.extractions import forms
from leakscope.extractions.forms import logit_changes, measure, probability_of_one
from leakscope.extractions.subspace import Subspace
from leakscope.protocols import Answers


def answers(f: Any, shown: Any, values: Any) -> Answers:
    numbers = np.asarray(shown)
    return Answers(
        predictions=np.asarray(f, dtype=float),
        shown=numbers,
        features=np.zeros((*numbers.shape, 1)),
        labels=np.zeros(numbers.shape),
        values=np.asarray(values, dtype=float),
    )


def test_the_change_is_that_of_the_logit_of_the_record_asked_for() -> None:
    told = answers([0.4, 0.2, 0.8], [[7, 3], [3, 9], [3, 1]], [[0.1, -0.2], [0.3, 0], [0.2, 0.1]])
    # Where class 1 is predicted it is the probability of that which falls.
    expected = [logit(0.2) - logit(0.4), logit(0.5) - logit(0.2), logit(0.6) - logit(0.8)]
    np.testing.assert_allclose(logit_changes(told, 3, True), [expected], rtol=1e-14)


def test_a_tiny_influence_keeps_its_digits() -> None:
    told = answers([0.3], [[1]], [[1e-13]])
    assert logit_changes(told, 1, True)[0, 0] == pytest.approx(1e-13 / (0.3 * 0.7), rel=1e-9)


@pytest.mark.parametrize(
    ("f", "value", "number"),
    [(0.5, 0.1, 2), (1e-5, 0.1, 1), (1 - 1e-5, 0.1, 1), (0.5, 0.49999, 1), (0.5, -0.6, 1)],
)
def test_what_is_not_shown_or_too_sure_is_not_read(f: float, value: float, number: int) -> None:
    assert np.isnan(logit_changes(answers([f], [[number]], [[value]]), 1, True)).all()


def test_without_signs_there_are_two_candidates() -> None:
    told = answers([0.4, 0.4, 0.4], [[1]] * 3, [[0.1], [0.5], [0.39995]])
    found = logit_changes(told, 1, False)
    np.testing.assert_allclose(found[:, 0], [logit(0.5) - logit(0.4), logit(0.3) - logit(0.4)])
    # A probability of −0.1 cannot be; one of 0.00005 can be, and is not exact.
    np.testing.assert_allclose(found[:, 1], [logit(0.9) - logit(0.4), np.inf])
    assert np.isnan(found[:, 2]).all()


def test_two_columns_are_read_and_three_refused() -> None:
    told = answers([[0.9, 0.1]], [[1]], [[0.1]])
    np.testing.assert_array_equal(probability_of_one(told), [0.1])
    with pytest.raises(NotApplicableError, match="two classes, and this one has 3"):
        probability_of_one(answers([[0.9, 0.1, 0.0]], [[1]], [[0.1]]))


def one_form(slope: np.ndarray, value: float, sight: float, signed: bool) -> Callable[..., Answers]:
    """An oracle of one record, number 1, that is shown within a distance of the origin."""
    weights = np.linspace(-0.5, 0.7, len(slope))

    def ask(points: np.ndarray) -> Answers:
        z = 0.3 + points @ weights
        rise = expit(z + value + points @ slope) - expit(z)
        influence = np.where(expit(z) > 0.5, -rise, rise)  # the fall of the predicted class
        near = np.linalg.norm(points, axis=1) <= sight
        told = influence if signed else np.abs(influence)
        return answers(expit(z), np.where(near, 1, 2)[:, None], told[:, None])

    return ask


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("value", [0.2, -0.2, 0.01])
@pytest.mark.parametrize(("d", "sight"), [(3, 10.0), (3, 0.05), (50, 10.0), (50, 0.01)])
def test_the_form_is_measured_to_many_digits(
    d: int, sight: float, value: float, signed: bool
) -> None:
    slope = np.random.default_rng(1).normal(size=d) / 20
    ask = one_form(slope, value, sight, signed)
    space, point = Subspace.whole(np.ones(d)), np.zeros(d)
    form = measure(ask, space, point, ask(point[None]), 1, signed, 1.0)
    assert form is not None
    assert form.value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(form.slope, slope, atol=1e-8)
    np.testing.assert_allclose(form.logit_slope, np.linspace(-0.5, 0.7, d), atol=1e-8)
    assert form.step <= sight


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("sight", "last"), [(10.0, 0.25), (10.0, 64.0), (0.01, 1.0)])
def test_many_directions_are_measured_by_short_steps(
    sight: float, last: float, signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slope = np.random.default_rng(1).normal(size=50) / 20
    asked = [0.0]

    def ask(points: np.ndarray) -> Answers:
        asked.extend(np.linalg.norm(points, axis=1))
        return one_form(slope, 0.2, sight, signed)(points)

    monkeypatch.setattr(forms, "MANY", 49)
    space, point = Subspace.whole(np.ones(50)), np.zeros(50)
    form = measure(ask, space, point, ask(point[None]), 1, signed, last)
    assert form is not None
    np.testing.assert_allclose(form.slope, slope, atol=1e-8)
    # At the most that length, or the shortest of the ladder.
    assert max(asked) == pytest.approx(max(0.25, last / 32))
    assert form.step <= min(max(asked), sight)


@pytest.mark.parametrize("sign", [1, -1])
def test_signs_are_found_where_the_form_changes_its_own_on_the_way(sign: int) -> None:
    slope = np.array([-0.6, 0.1, 0.3]) * sign
    ask = one_form(slope, 0.5 * sign, np.inf, signed=False)
    space, point = Subspace.whole(np.ones(3)), np.zeros(3)
    form = measure(ask, space, point, ask(point[None]), 1, False, 0.5)
    assert form is not None
    assert form.step == 2.0  # along the first direction the change is +0.5 and then −0.7
    np.testing.assert_allclose([form.value, *form.slope], [0.5 * sign, *slope], atol=1e-10)


def test_a_sign_that_cannot_be_is_ruled_out_at_once() -> None:
    ask = one_form(np.array([0.1, -0.2]), -3.0, np.inf, signed=False)
    first = ask(np.zeros((1, 2)))
    assert np.isinf(logit_changes(first, 1, False)).sum() == 1
    form = measure(ask, Subspace.whole(np.ones(2)), np.zeros(2), first, 1, False, 0.1)
    assert form is not None
    np.testing.assert_allclose([form.value, *form.slope], [-3.0, 0.1, -0.2], atol=1e-10)


def test_a_record_seen_at_the_point_alone_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "TRIES", 6)
    ask = one_form(np.array([0.1, -0.2]), 0.3, 0.0, signed=True)
    first = ask(np.zeros((1, 2)))
    assert measure(ask, Subspace.whole(np.ones(2)), np.zeros(2), first, 1, True, 1.0) is None


def test_a_record_that_is_not_shown_at_the_point_cannot_be_measured() -> None:
    ask = one_form(np.array([0.1, -0.2]), 0.3, 1.0, signed=True)
    first = ask(np.zeros((1, 2)))
    assert measure(ask, Subspace.whole(np.ones(2)), np.zeros(2), first, 5, True, 1.0) is None


def test_where_no_direction_is_left_the_value_is_all() -> None:
    space = Subspace(np.zeros(2), np.empty((0, 2)), np.ones(2))
    ask = one_form(np.array([0.1, -0.2]), 0.3, 1.0, signed=True)
    form = measure(ask, space, np.zeros(2), ask(np.zeros((1, 2))), 1, True, 1.0)
    assert form is not None
    assert form.value == pytest.approx(0.3)
    assert form.slope.shape == form.logit_slope.shape == (0,)
