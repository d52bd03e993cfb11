from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.channels.oracle import LocalOracle
from leakscope.defenses import explanations as module
from leakscope.defenses.refusal import RefusedExplanations
from leakscope.errors import InputError
from leakscope.extractions import SelfReveal

Make = Callable[..., Any]


def test_a_record_that_would_be_shown_is_refused(linear: Make) -> None:
    explainer = linear()
    true, values = explainer.explain(explainer.X, 5)
    own = (true == np.arange(30)[:, None]).any(axis=1)
    assert 0 < own.sum() < 30
    shown, told = RefusedExplanations().around(explainer).explain(explainer.X, 5)
    np.testing.assert_array_equal(shown[own], -1)
    np.testing.assert_array_equal(told[own], 0.0)
    np.testing.assert_array_equal(shown[~own], true[~own])
    np.testing.assert_array_equal(told[~own], values[~own])


def test_others_are_shown_instead(linear: Make) -> None:
    explainer = linear()
    order, influence = explainer.explain(explainer.X, 30)
    shown, told = RefusedExplanations(show_others=True).around(explainer).explain(explainer.X, 5)
    for row in range(30):
        others = order[row] != row
        np.testing.assert_array_equal(shown[row], order[row][others][:5])
        np.testing.assert_array_equal(told[row], influence[row][others][:5])


def test_a_stranger_is_answered(linear: Make) -> None:
    explainer = linear()
    queries = explainer.X + 1e-6
    for others in (True, False):
        safer = RefusedExplanations(show_others=others).around(explainer)
        np.testing.assert_array_equal(
            safer.explain(queries, 5)[0], explainer.explain(queries, 5)[0]
        )


@pytest.mark.parametrize("tolerance", [0.5, 0.9])
def test_the_tolerance_is_a_distance_in_spreads(linear: Make, tolerance: float) -> None:
    explainer = linear()
    queries = explainer.X + np.random.default_rng(1).normal(size=(30, 3)) / 4
    gaps = (queries[:, None] - explainer.X) / explainer.X.std(axis=0)
    near = np.linalg.norm(gaps, axis=2) <= tolerance
    true, _ = explainer.explain(queries, 5)
    refused = np.take_along_axis(near, true, axis=1).any(axis=1)
    assert 0 < refused.sum() < 30
    shown, _ = RefusedExplanations(tolerance).around(explainer).explain(queries, 5)
    np.testing.assert_array_equal((shown < 0).all(axis=1), refused)
    np.testing.assert_array_equal(shown[~refused], true[~refused])
    others = RefusedExplanations(tolerance, show_others=True).around(explainer)
    shown, _ = others.explain(queries, 30)
    np.testing.assert_array_equal((shown < 0).sum(axis=1), near.sum(axis=1))


def test_rounding_does_not_make_it_another_record(linear: Make) -> None:
    explainer = linear()
    shown, _ = RefusedExplanations().around(explainer).explain(explainer.X * (1 + 1e-15), 30)
    assert (shown < 0).all()


def test_the_tests_of_a_long_batch_are_made_in_blocks(
    linear: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = linear()
    safer = RefusedExplanations().around(explainer)
    whole = safer.explain(explainer.X, 5)[0]
    monkeypatch.setattr(module, "_NUMBERS", 200)
    np.testing.assert_array_equal(safer.explain(explainer.X, 5)[0], whole)


def test_a_refusal_tells_what_it_hides_and_asking_beside_shows_it(linear: Make) -> None:
    explainer = linear()
    plain = SelfReveal(explainer.X, ks=(5,)).run(LocalOracle.of(explainer))
    assert 0 < plain.recovered < 30
    assert plain.details["refused"] == 0
    refusing = RefusedExplanations().around(explainer)
    told = SelfReveal(explainer.X, ks=(5,)).run(LocalOracle.of(refusing))
    assert (told.recovered, told.details["refused"]) == (0, plain.recovered)
    others = RefusedExplanations(show_others=True).around(explainer)
    told = SelfReveal(explainer.X, ks=(5,)).run(LocalOracle.of(others))
    assert (told.recovered, told.details["refused"]) == (0, 0)
    for safer in (refusing, others):
        told = SelfReveal(explainer.X, ks=(5,), beside=1e-4).run(LocalOracle.of(safer))
        assert (told.recovered, told.details["refused"]) == (plain.recovered, 0)


def test_what_is_refused_has_no_influence(linear: Make) -> None:
    explainer = linear()
    queries = np.concatenate([explainer.X[:4], explainer.X[:4] + 1])
    true = explainer.influence(queries)
    own = np.concatenate([np.eye(4, 30, dtype=bool), np.zeros((4, 30), dtype=bool)])
    for others in (True, False):
        safer = RefusedExplanations(show_others=others).around(explainer)
        parts = np.concatenate([part for _, part in safer.influence_chunks(queries)])
        gone = own if others else own.any(axis=1, keepdims=True) | np.zeros_like(own)
        np.testing.assert_array_equal(np.isnan(parts), gone)
        np.testing.assert_array_equal(parts[~gone], true[~gone])


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(InputError, match="tolerance must be a finite number of at least 0, got -1"):
        RefusedExplanations(-1.0)


def test_it_says_that_others_are_shown() -> None:
    assert str(RefusedExplanations()) == "explain-refuse:0"
    assert str(RefusedExplanations(0.5, show_others=True)) == "explain-refuse:0.5 (others shown)"
