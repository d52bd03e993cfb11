from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.channels.oracle import LocalOracle
from leakscope.errors import InputError
from leakscope.extractions import SelfReveal
from leakscope.metrics import wilson

Make = Callable[..., Any]


@pytest.mark.parametrize("show", ["signed", "absolute", "records"])
def test_six_records_whose_own_ranks_are_known(six: Any, show: str) -> None:
    told = SelfReveal(six.X, ks=(1, 2, 3, 4)).run(six.oracle(k=4, show=show))
    everyone = [one for one in told.groups if one.group == "all"]
    # Own ranks 2, 4, 1, 2, 3, 1.
    assert [(one.k, one.recovered) for one in everyone] == [(1, 2), (2, 4), (3, 5), (4, 6)]
    assert [one.share for one in everyone] == [wilson(hits, 6) for hits in (2, 4, 5, 6)]
    assert (told.recovered, told.bound, told.queries) == (6, 6, 6)
    assert told.details == {"members": 6, "asked": 6, "refused": 0, "twins": 0}


def test_it_agrees_with_ranks_from_the_whole_matrix_of_influence(problem: Make) -> None:
    made = problem(40, 3)
    order, _ = made.explain(made.X, 40)
    ranks = np.argmax(order == np.arange(40)[:, None], axis=1) + 1
    sex = np.where(np.arange(40) % 3 == 0, "f", "m")
    told = SelfReveal(made.X, groups={"sex": sex}).run(made.oracle(k=10))
    counted = {(one.group, one.value, one.k): one.recovered for one in told.groups}
    for k in (1, 5, 10):
        assert counted["all", "everyone", k] == (ranks <= k).sum()
        assert counted["sex", "f", k] == (ranks[sex == "f"] <= k).sum()
        assert counted["sex", "m", k] == (ranks[sex == "m"] <= k).sum()
    assert 0 < told.recovered == (ranks <= 10).sum() < 40


def test_an_explanation_is_judged_by_what_the_oracle_shows(six: Any) -> None:
    told = SelfReveal(six.X).run(six.oracle(k=2))
    assert [one.k for one in told.groups] == [1]
    assert told.recovered == 2
    with pytest.raises(InputError, match=r"ks is \(5, 10\), and the oracle shows 2 records"):
        SelfReveal(six.X, ks=(5, 10)).run(six.oracle(k=2))
    with pytest.raises(InputError, match="option ks must be a whole number of at least 1, got 0"):
        SelfReveal(six.X, ks=(0,)).run(six.oracle(k=2))


def test_a_stranger_is_never_found(six: Any) -> None:
    told = SelfReveal(six.X + 0.5, ks=(4,)).run(six.oracle(k=4))
    assert told.recovered == 0
    assert told.groups[0].recovered == 0
    assert len(told.records) > 0


@pytest.mark.parametrize("budget", [0, 3])
def test_shares_are_of_those_it_could_ask_about(six: Any, budget: int) -> None:
    sex, person = list("fmfmfm"), list("aabbcc")
    told = SelfReveal(six.X, ks=(4,), groups={"sex": sex}, unit=person).run(
        six.oracle(k=4, budget=budget)
    )
    assert told.stopped == "the budget of queries was spent"
    assert told.details["asked"] == told.queries == budget
    assert [one.n for one in told.groups] == ([3, 2, 1] if budget else [])


def test_one_of_two_equal_records_is_found_by_the_other(one_to_one: Make) -> None:
    oracle = one_to_one([[1], [2], [0]])
    oracle.X[1] = oracle.X[0]
    told = SelfReveal(oracle.X[:1], ks=(1,)).run(oracle)
    assert told.recovered == 1
    np.testing.assert_array_equal(told.records, [1])


def test_distinct_records_are_counted_beside_those_who_see_them(one_to_one: Make) -> None:
    oracle = one_to_one([[1], [1], [1], [0]])
    oracle.X[:3] = oracle.X[0] + [[-0.0], [0.0], [1e-14]]
    told = SelfReveal(oracle.X, ks=(1,)).run(oracle)
    # Three equals, but for rounding, are all shown the second of them.
    assert told.groups[0].recovered == 3
    assert told.recovered == 1
    assert told.details["twins"] == 3


def test_rounding_in_preparing_a_record_does_not_hide_it(problem: Make) -> None:
    made = problem(40, 3)
    as_prepared = SelfReveal(made.X, ks=(5,)).run(made.oracle(k=5))
    rounded = made.X * (1 + 1e-14)
    assert not np.array_equal(rounded, made.X)
    again = SelfReveal(rounded, ks=(5,)).run(made.oracle(k=5))
    assert again.groups == as_prepared.groups
    far = SelfReveal(made.X + 1e-6, ks=(5,)).run(made.oracle(k=5))
    assert far.groups[0].recovered == 0 < as_prepared.groups[0].recovered


def test_a_record_is_asked_about_elsewhere(problem: Make) -> None:
    made = problem(40, 3)
    heard: list[np.ndarray] = []

    def explain(Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        heard.append(Q)
        order, values = made.explain(Q, k)
        return np.asarray(order), np.asarray(values)

    oracle = LocalOracle(made.predict, explain, made.X, made.y)
    told = SelfReveal(made.X, ks=(5,), outward=1.0).run(oracle)
    outside = made.X + (made.X - made.X.mean(axis=0))
    np.testing.assert_allclose(heard[0], outside)
    own = (made.explain(outside, 5)[0] == np.arange(40)[:, None]).any(axis=1)
    assert told.recovered == told.groups[0].recovered == own.sum() > 0

    heard.clear()
    SelfReveal(made.X, ks=(5,), beside=0.3, copies=50).run(oracle)
    assert heard[0].shape == (1024, 3)
    noise = (np.concatenate(heard) - np.repeat(made.X, 50, axis=0)) / made.X.std(axis=0)
    assert noise.shape == (2000, 3)
    # Of 6,000 numbers the standard error is 0.3 / 77 and 0.3 / 110.
    assert abs(noise.mean()) < 0.025
    assert abs(noise.std() - 0.3) < 0.017


def test_one_answer_of_several_is_enough(one_to_one: Make) -> None:
    oracle = one_to_one([[1, 2], [1, 0], [0, 1]])
    table = [[1, 2], [0, 1], [-1, -1], [1, 0], [-1, -1], [-1, -1]]
    answers = iter(table)

    def explain(Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array([next(answers) for _ in Q]), np.zeros((len(Q), 2))

    oracle.explain = explain
    told = SelfReveal(oracle.X, ks=(1, 2), copies=2).run(oracle)
    # Record 0 is shown first by its second answer, 1 first by its second, 2 is refused twice.
    assert [one.recovered for one in told.groups] == [2, 2]
    assert told.details == {"members": 3, "asked": 3, "refused": 1, "twins": 0}
    assert told.queries == 6


def test_a_record_whose_copies_were_not_all_asked_about_is_left_out(six: Any) -> None:
    told = SelfReveal(six.X, ks=(4,), copies=4).run(six.oracle(k=4, budget=10))
    assert (told.queries, told.details["asked"], told.groups[0].n) == (10, 2, 2)


def test_a_record_of_zeros_is_not_found_where_nothing_is_shown(one_to_one: Make) -> None:
    oracle = one_to_one([[0], [0]])
    oracle.explain = lambda Q, k: (np.full((len(Q), 1), -1), np.zeros((len(Q), 1)))
    told = SelfReveal(oracle.X[:1], ks=(1,)).run(oracle)
    assert not oracle.X[0].any()
    assert (told.recovered, told.groups[0].recovered, told.details["refused"]) == (0, 0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"copies": 0}, "option copies must be a whole number of at least 1, got 0"),
        ({"beside": -0.1}, "option beside must be a finite number of at least 0, got -0.1"),
        ({"outward": np.nan}, "option outward must be a finite number of at least 0, got nan"),
    ],
)
def test_wrong_options_are_refused(six: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SelfReveal(six.X, ks=(1,), **options).run(six.oracle())
