from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.extractions.disclosure import Disclosure, excess, shares
from leakscope.metrics import wilson
from leakscope.metrics.intervals import newcombe


def disclosure(**changes: Any) -> Disclosure:
    chosen: dict[str, Any] = {
        "extraction": "mine",
        "paper": "Nobody 2020",
        "k": 2,
        "show": "signed",
        "recovered": 3,
        "bound": None,
        "queries": 9,
        "records": np.array([5, 0, 2, 7]),
        "first": np.array([1, 1, 4, 9]),
        "stopped": "it was tired",
    }
    return Disclosure(**(chosen | changes))


def test_the_curve_counts_what_had_been_shown() -> None:
    np.testing.assert_array_equal(
        disclosure().shown_after([0, 1, 3, 4, 8, 9, 50]), [0, 2, 2, 3, 3, 4, 4]
    )
    assert disclosure().shown_after(4) == 3


def test_nothing_is_claimed_that_was_not_shown() -> None:
    with pytest.raises(InputError, match="mine claims 5 records, and the oracle showed 4"):
        disclosure(recovered=5)


def test_it_is_json_with_the_keys_of_a_report() -> None:
    told = json.loads(json.dumps(disclosure().among(8, {"sex": list("abababab")}).to_dict()))
    assert {"extraction", "recovered", "bound", "queries", "groups"} <= set(told)
    assert (told["recovered"], told["shown"], told["bound"], told["queries"]) == (3, 4, None, 9)
    assert told["curve"] == {
        "queries": list(range(10)),
        "shown": [0, 2, 2, 2, 3, 3, 3, 3, 3, 4],
    }
    assert [group["value"] for group in told["groups"]] == ["everyone", "a", "b"]
    assert told["groups"][0]["share"] == wilson(4, 8).to_dict()


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    told = disclosure(queries=100_000).to_dict()["curve"]
    assert len(told["queries"]) <= 50
    assert (told["queries"][0], told["queries"][-1]) == (0, 100_000)
    assert (told["shown"][0], told["shown"][-1]) == (0, 4)


def test_shares_are_those_of_wilson_in_each_group() -> None:
    hits = np.array([True, False, True, True, False, False])
    found = shares(hits, 5, {"sex": np.array(list("mmmfff")), "age": [1, 2, 2, 2, 2, 2]})
    assert [(one.group, one.value, one.n, one.recovered) for one in found] == [
        ("all", "everyone", 6, 3),
        ("sex", "f", 3, 1),
        ("sex", "m", 3, 2),
        ("age", "1", 1, 1),
        ("age", "2", 5, 2),
    ]
    assert all(one.share == wilson(one.recovered, one.n) and one.k == 5 for one in found)


def test_rows_of_one_person_count_together() -> None:
    hits = np.repeat([True, False, True, False], 10)
    person = np.repeat(list("abcd"), 10)
    alone, together = shares(hits, 1)[0].share, shares(hits, 1, unit=person)[0].share
    assert alone.value == together.value == 0.5
    # Four persons, all of whose rows agree: the variance is 4/3 of that of four independent rows.
    expected = wilson(
        0.5 * 40 / (40 / 39 * 10 * 4 / 3 / (40 / 39) ** 2), 40 / (10 * 4 / 3 * 39 / 40)
    )
    assert together.low == pytest.approx(expected.low)
    assert together.high == pytest.approx(expected.high)


def test_the_training_set_shared_out_by_whoever_knows_it() -> None:
    whole = disclosure().among(8, unit=[0, 0, 1, 1, 2, 2, 3, 3])
    assert whole.groups[0].recovered == 4
    assert whole.recovered == 3
    assert whole.groups[0].share.low < wilson(4, 8).low + 1e-12


def test_a_column_that_could_be_taken_for_everyone_is_refused() -> None:
    hits = np.array([True, False])
    with pytest.raises(InputError, match="A group column is called 'all', under which"):
        shares(hits, 5, {"all": ["everyone", "nobody"]})
    named = shares(hits, 5, {"All": ["everyone", "nobody"]})
    assert [one.group for one in named] == ["all", "All", "All"]


@pytest.mark.parametrize(("hits", "n", "others", "m"), [(9, 30, 2, 50), (0, 7, 7, 7), (5, 5, 5, 5)])
def test_the_excess_of_two_shares_is_that_of_newcombe(
    hits: int, n: int, others: int, m: int
) -> None:
    found = excess(wilson(hits, n), wilson(others, m))
    expected = newcombe(hits / n, n, others / m, m)
    assert found.value == expected.value
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
