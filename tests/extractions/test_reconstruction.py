from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.channels.oracle import LocalOracle
from leakscope.errors import InputError, NotApplicableError
from leakscope.extractions import Reconstruction

Make = Callable[..., Any]


@pytest.mark.parametrize("show", ["signed", "absolute"])
@pytest.mark.parametrize(
    "shape", [(40, 4), (40, 8), (30, 12, 0, 5), (20, 30, 1, 10), (12, 25)], ids=str
)
def test_one_pass_finds_as_many_records_as_there_are_directions_and_one(
    problem: Make, shape: tuple[int, ...], show: str
) -> None:
    made = problem(*shape)
    told = Reconstruction().run(made.oracle(k=1, show=show))
    assert told.recovered == made.bound
    assert told.bound == made.X.shape[1] + 1
    assert len(told.details["passes"]) == 1


def test_the_last_may_be_out_of_sight(problem: Make) -> None:
    # Where few records are left, all that is left may move the logit by more than can be read.
    made = problem(12, 25, 2)
    told = Reconstruction().run(made.oracle(k=1))
    assert told.recovered == made.bound - 1
    assert told.stopped == "the records that were shown could not be measured"


@pytest.mark.parametrize("seed", range(4))
def test_it_depends_on_no_single_start(problem: Make, seed: int) -> None:
    made = problem(40, 6, seed)
    assert Reconstruction(seed=seed).run(made.oracle(k=1)).recovered == made.bound == 7


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_units_of_the_features_do_not_matter(problem: Make, scale: float) -> None:
    made = problem(40, 6)
    oracle = LocalOracle(
        lambda X: made.predict(X / scale),
        lambda X, k: made.explain(X / scale, k),
        made.X * scale,
        made.y,
        k=1,
    )
    assert Reconstruction().run(oracle).recovered == made.bound


def test_probabilities_of_both_classes_serve_as_well(problem: Make) -> None:
    made = problem(40, 6)

    def both(X: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - made.predict(X), made.predict(X)])

    oracle = LocalOracle(both, made.explain, made.X, made.y, k=1)
    assert Reconstruction().run(oracle).recovered == made.bound


def test_more_classes_are_refused(problem: Make) -> None:
    made = problem(40, 6)
    oracle = LocalOracle(
        lambda X: np.tile([0.2, 0.3, 0.5], (len(X), 1)), made.explain, made.X, made.y
    )
    with pytest.raises(NotApplicableError, match="two classes, and this one has 3"):
        Reconstruction().run(oracle)


@pytest.mark.slow
@pytest.mark.parametrize("show", ["signed", "absolute"])
def test_a_set_of_the_size_of_adult_falls_to_its_bound(drawn_problem: Make, show: str) -> None:
    made = drawn_problem(2000, 104, 90)
    told = Reconstruction().run(made.oracle(k=1, show=show))
    assert made.bound == 91
    assert told.recovered == 91
    # Little more than the fewest queries: the directions left, and one, for each record found.
    fewest = sum(105 - found for found in range(91)) * (1 if show == "signed" else 2)
    assert told.queries < 3 * fewest


def test_several_records_at_a_time_and_another_pass_find_more(drawn_problem: Make) -> None:
    made = drawn_problem(300, 20, 15)
    one = Reconstruction().run(made.oracle(k=1))
    five = Reconstruction().run(made.oracle(k=5))
    twice = Reconstruction(restarts=1).run(made.oracle(k=1))
    assert one.recovered == made.bound == 16
    assert five.recovered > 2 * one.recovered
    assert five.bound == 5 * 21
    assert one.recovered < twice.recovered <= 2 * one.recovered
    assert [found["found"] for found in twice.details["passes"]] == [16, 16]
    assert twice.bound == 2 * 21


def test_without_values_it_draws_points_for_as_long_as_that_helps(drawn_problem: Make) -> None:
    made = drawn_problem(300, 20, 15)
    told = Reconstruction().run(made.oracle(k=2, show="records"))
    assert told.bound is None
    assert told.details["passes"][0]["removed"] == 0
    assert told.stopped.startswith("the last 200 points showed nothing new")
    assert 2 < told.recovered <= len(told.records) < 300


def test_without_values_sure_predictions_are_asked_about_again(drawn_problem: Make) -> None:
    made = drawn_problem(300, 20, 15)
    steep = type(made)(made.X, made.y, made.theta * 200, made.without + made.theta * 199)
    told = Reconstruction().run(steep.oracle(k=1, show="records"))
    assert told.recovered > 2


@pytest.mark.parametrize("show", ["signed", "absolute", "records"])
@pytest.mark.parametrize("budget", [0, 1, 10, 19, 25, 60])
def test_it_stops_with_what_it_has(problem: Make, show: str, budget: int) -> None:
    made = problem(40, 6)
    oracle = made.oracle(k=2, show=show, budget=budget)
    told = Reconstruction(restarts=3).run(oracle)
    assert told.stopped == "the budget of queries was spent"
    assert told.queries == oracle.log.queries <= budget
    assert told.recovered <= len(told.records) == len(oracle.log.shown)
    assert (told.recovered > 0) == (budget >= 19)


def test_the_same_seed_finds_the_same(problem: Make) -> None:
    made = problem(40, 6)
    first, again, other = (Reconstruction(seed=seed).run(made.oracle(k=2)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.records, again.records)
    assert first.queries == again.queries
    assert not np.array_equal(first.first, other.first)


def test_where_the_top_record_never_changes_it_is_the_only_one(problem: Make) -> None:
    made = problem(40, 6)
    gaps = np.zeros((40, 7))
    gaps[:, -1] = np.linspace(0.1, 0.2, 40)  # all twins are shifts in one direction (lemma F.1)
    shifted = type(made)(made.X, made.y, made.theta, made.theta + gaps)
    told = Reconstruction().run(shifted.oracle(k=1))
    np.testing.assert_array_equal(told.records, [39])
    assert told.recovered == 1
    assert told.stopped == "the influence that was left is the same everywhere"


def test_when_all_influence_is_removed_it_says_so(problem: Make) -> None:
    made = problem(40, 6)
    gaps = np.zeros((40, 7))
    gaps[3] = [0.1, -0.2, 0.1, 0, 0, 0.3, 0.5]  # one record alone has any influence
    alone = type(made)(made.X, made.y, made.theta, made.theta + gaps)
    told = Reconstruction().run(alone.oracle(k=1))
    assert told.details["passes"][0]["removed"] >= 1
    assert 3 in told.records


def test_a_model_too_sure_to_be_read_is_left_after_a_few_tries(problem: Make) -> None:
    made = problem(40, 6)
    oracle = LocalOracle(lambda X: np.ones(len(X)), made.explain, made.X, made.y, k=1)
    told = Reconstruction().run(oracle)
    assert told.stopped == "the records that were shown could not be measured"
    assert told.recovered == 1


def test_records_of_zeros_alone_give_no_way_and_do_no_harm(drawn_problem: Make) -> None:
    made = drawn_problem(30, 4, 4)
    blank = type(made)(made.X * 0, made.y, made.theta, made.without)
    assert Reconstruction().run(blank.oracle(k=1)).recovered == 5


def test_a_negative_number_of_restarts_is_refused(problem: Make) -> None:
    with pytest.raises(InputError, match="restarts must be a whole number of at least 0, got -1"):
        Reconstruction(restarts=-1).run(problem(40, 6).oracle())


@pytest.mark.slow
def test_values_that_are_all_zero_are_taken_for_none(drawn_problem: Make) -> None:
    made = drawn_problem(300, 20, 15)
    oracle = LocalOracle(
        made.predict,
        lambda X, k: (made.explain(X, k)[0], np.zeros((len(X), k))),
        made.X,
        made.y,
        k=2,
    )
    told, without = (
        Reconstruction().run(one) for one in (oracle, made.oracle(k=2, show="records"))
    )
    np.testing.assert_array_equal(told.records, without.records)
    assert told.bound is None
    assert told.recovered == without.recovered > 2


def test_where_records_are_hidden_the_others_fall(problem: Make) -> None:
    made = problem(40, 4)

    def explain(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        order, values = made.explain(X, 40)
        first = np.argsort(order % 2, axis=1, kind="stable")[:, :k]  # only even numbers are shown
        return np.take_along_axis(order, first, axis=1), np.take_along_axis(values, first, axis=1)

    told = Reconstruction().run(LocalOracle(made.predict, explain, made.X, made.y, k=1))
    assert told.recovered >= made.bound
    assert (told.records % 2 == 0).all()
