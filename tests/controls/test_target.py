from __future__ import annotations

import numpy as np
import pytest

from leakscope.controls.constant import constant_control, constant_model
from leakscope.controls.target import (
    accuracy_control,
    error_control,
    size_control,
    variation_control,
)
from leakscope.metrics import Interval
from leakscope.models import as_model
from leakscope.records import Records


@pytest.mark.parametrize(
    ("members", "nonmembers", "passed", "fatal"),
    [
        (19, 500, False, True),
        (500, 19, False, True),
        (20, 500, False, False),
        (100, 100, True, True),
    ],
)
def test_sizes(members, nonmembers, passed, fatal):
    control = size_control(members, nonmembers)
    assert (control.passed, control.fatal) == (passed, fatal)
    assert f"{members} members and {nonmembers} non-members" in control.detail


def test_persons_are_counted_where_rows_belong_to_them():
    assert size_control(19, 500, persons=True).voids
    detail = size_control(200, 500, persons=True).detail
    assert detail == "200 members and 500 non-members, counted by person."


def test_better_on_nonmembers_hints_at_swapped_sides():
    member, other = Interval(0.7, 0.6, 0.8), Interval(0.9, 0.85, 0.95)
    control = accuracy_control(member, other, Interval(-0.2, -0.3, -0.1))
    assert control.passed is False
    assert not control.voids
    assert accuracy_control(member, other, Interval(-0.2, -0.5, 0.1)).passed


def test_worse_than_guessing_on_members_hints_at_classes_in_another_order():
    gap = Interval(0.0, -0.1, 0.1)
    control = accuracy_control(Interval(0.1, 0.05, 0.3), Interval(0.1, 0.05, 0.3), gap, 3)
    assert control.passed is False
    assert not control.voids
    assert "fewer members than by guessing among 3 classes" in control.detail
    assert "the classes in the order it has" in control.detail
    # Where guessing is within the interval nothing is sure; of two classes it is right more often.
    assert accuracy_control(Interval(0.3, 0.2, 0.4), Interval(0.3, 0.2, 0.4), gap, 3).passed
    assert not accuracy_control(Interval(0.4, 0.3, 0.45), Interval(0.4, 0.3, 0.5), gap, 2).passed


def test_errors_of_a_regression_are_told():
    assert "0.5 on members and 2 on" in error_control(0.5, 2.0).detail


def test_constant_scores_are_named():
    assert variation_control([], 1).passed
    some = variation_control(["b"], 2)
    assert some.passed
    assert "The scores of b are the same" in some.detail
    every = variation_control(["b", "c"], 2)
    assert every.passed is False
    assert "every attack" in every.detail
    assert not every.voids


def test_the_constant_model_answers_with_the_average_label():
    model = as_model(lambda X: np.tile([0.9, 0.1], (len(X), 1)), classes=np.array(["a", "b"]))
    records = Records(np.zeros((4, 1)), ["a", "b", "b", "b"])
    np.testing.assert_allclose(
        constant_model(model, records).predict_proba(records.X), np.tile([0.25, 0.75], (4, 1))
    )
    regression = as_model(lambda X: X[:, 0], task="regression")
    numbers = Records(np.zeros((2, 1)), [1.0, 3.0])
    assert constant_model(regression, numbers).predict(numbers.X).tolist() == [2.0, 2.0]


def test_an_attack_that_tells_the_sides_apart_without_a_model_is_caught():
    rng = np.random.default_rng(0)
    membership = np.arange(1000) < 500
    noise = rng.normal(size=1000)
    fair = constant_control(
        {"fair": (noise, 1.0), "same": (np.ones(1000), 1.0)}, [], membership, None
    )
    assert fair.passed
    for sign in (1, -1):
        told = {"label": (noise + sign * membership, 1.0), "fair": (noise, 1.0)}
        control = constant_control(told, [], membership, None)
        assert control.voids
        assert "label (AUC" in control.detail
        assert "fair (" not in control.detail


def test_no_more_is_seen_in_inflated_variances():
    rng = np.random.default_rng(1)
    membership = np.arange(400) < 200
    scores = rng.normal(size=400) + 0.5 * membership
    assert not constant_control({"a": (scores, 1.0)}, [], membership, None).passed
    assert constant_control({"a": (scores, 9.0)}, [], membership, None).passed


def test_attacks_that_could_not_be_tried_on_the_constant_model_are_named():
    membership = np.arange(100) < 50
    nothing = constant_control({}, ["a", "b"], membership, None)
    assert nothing.passed is None
    assert "a, b" in nothing.detail
    some = constant_control({"c": (np.ones(100), 1.0)}, ["a"], membership, None)
    assert some.passed
    assert "could not be tried with a." in some.detail
