from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.extractions import StaticQueries

Make = Callable[..., Any]
HELD = np.column_stack([np.arange(40.0), np.arange(40) % 2 * 3.0, np.full(40, 7.0)])


class Listener:
    """Passes queries on, and keeps them."""

    def __init__(self, oracle: Any) -> None:
        self.oracle, self.heard = oracle, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.oracle, name)

    def ask(self, X: np.ndarray) -> Any:
        self.heard.append(X)
        return self.oracle.ask(X)


def queries(made: Any, **options: Any) -> np.ndarray:
    listener = Listener(made.oracle(k=2))
    StaticQueries(HELD, **options).run(listener)
    return np.concatenate(listener.heard)


@pytest.fixture(scope="module")
def made(problem: Make) -> Any:
    return problem(30, 3)


def test_uniform_queries_fill_the_range_of_each_feature(made: Any) -> None:
    asked = queries(made, distribution="uniform", queries=4000)
    assert asked.shape == (4000, 3)
    # Means of 4,000: five standard errors, rarer than one in a million.
    assert asked[:, 0].mean() == pytest.approx(19.5, abs=5 * 39 / np.sqrt(12 * 4000))
    assert (asked[:, 0].min(), asked[:, 0].max()) == (
        pytest.approx(0, abs=0.2),
        pytest.approx(39, abs=0.2),
    )
    assert set(asked[:, 1]) == {0.0, 3.0}
    assert asked[:, 1].mean() == pytest.approx(1.5, abs=5 * 1.5 / np.sqrt(4000))
    assert set(asked[:, 2]) == {7.0}


def test_marginal_queries_draw_each_feature_apart_from_the_others(made: Any) -> None:
    asked = queries(made, distribution="marginal", queries=4000)
    assert set(asked[:, 0]) == set(HELD[:, 0])
    parity = asked[:, 0] % 2 * 3
    # Among those held, the second feature is the parity of the first; drawn apart, half the time.
    assert (parity == asked[:, 1]).mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(4000))


def test_actual_queries_are_the_records_held_each_once(made: Any) -> None:
    asked = queries(made, distribution="actual", queries=1000)
    np.testing.assert_array_equal(asked[np.argsort(asked[:, 0])], HELD)
    assert not np.array_equal(asked, HELD)
    few = queries(made, distribution="actual", queries=7)
    np.testing.assert_array_equal(few, asked[:7])


@pytest.mark.parametrize("distribution", ["uniform", "marginal", "actual"])
def test_the_curve_counts_distinct_records(problem: Make, distribution: str) -> None:
    made, others = problem(30, 3), problem(50, 3, seed=1).X
    listener = Listener(made.oracle(k=3))
    told = StaticQueries(others, distribution, queries=40).run(listener)
    shown = made.explain(np.concatenate(listener.heard), 3)[0]
    expected = [len(np.unique(shown[:q])) for q in range(41)]
    np.testing.assert_array_equal(told.shown_after(np.arange(41)), expected)
    assert told.recovered == expected[-1] == len(told.records)
    assert (told.queries, told.bound, told.details) == (40, None, {"distribution": distribution})


def test_the_same_seed_asks_the_same(made: Any) -> None:
    for distribution in ("uniform", "marginal", "actual"):
        first, again, other = (
            queries(made, distribution=distribution, queries=10, seed=seed) for seed in (3, 3, 4)
        )
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_it_stops_with_what_it_has(made: Any) -> None:
    told = StaticQueries(HELD, queries=30).run(made.oracle(k=2, budget=11))
    assert (told.queries, told.stopped) == (11, "the budget of queries was spent")
    assert told.recovered > 0


def test_wrong_options_are_refused(made: Any) -> None:
    with pytest.raises(InputError, match="distribution cannot be 'margnal'; did you mean 'marg"):
        StaticQueries(HELD, "margnal").run(made.oracle())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="queries must be a whole number of at least 1, got 0"):
        StaticQueries(HELD, queries=0).run(made.oracle())
