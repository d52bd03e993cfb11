from __future__ import annotations

import threading
import time

import pytest
from threadpoolctl import threadpool_info

from leakscope.exact.threads import over_parts, single_products, threads


def product_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_results_come_in_the_order_of_the_parts() -> None:
    def work(part: int) -> int:
        time.sleep(0.01 * (3 - part))  # the last is done first
        return part**2

    assert list(over_parts(work, range(4), workers=4)) == [0, 1, 4, 9]
    assert list(over_parts(work, range(4))) == [0, 1, 4, 9]
    assert list(over_parts(work, [])) == []


def test_as_many_threads_work_as_are_asked_for() -> None:
    both = threading.Barrier(2, timeout=10)  # passed by two at a time only
    assert len(list(over_parts(lambda _: both.wait(), range(4), workers=2))) == 4
    one = set(over_parts(lambda _: threading.get_ident(), range(4), workers=1))
    assert len(one) == 1


def test_products_within_take_one_thread_and_get_theirs_back() -> None:
    before = product_threads()
    assert list(over_parts(lambda _: product_threads(), range(2))) == [{1}, {1}]
    with single_products():
        assert product_threads() == {1}
    assert product_threads() == before


def test_an_error_in_a_part_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(over_parts(lambda part: 1 // part, [1, 0]))


def test_this_thread_takes_its_share() -> None:
    both = threading.Barrier(2, timeout=10)

    def work(part: int) -> tuple[int, int]:
        both.wait()
        return part, threading.get_ident()

    with threads(2) as each:
        found = list(each(work, range(6)))
        assert [part for part, _ in found] == list(range(6))
        assert len({ident for _, ident in found}) == 2
        assert threading.get_ident() in {ident for _, ident in found}
        assert list(each(work, iter(()))) == []
    with threads(1) as each:
        assert {*each(lambda _: threading.get_ident(), range(3))} == {threading.get_ident()}


def test_what_none_has_begun_is_dropped_with_an_error() -> None:
    begun = []

    def work(part: int) -> None:
        begun.append(part)
        time.sleep(0.01)
        if part == 0:
            raise ZeroDivisionError

    with threads(2) as each, pytest.raises(ZeroDivisionError):
        list(each(work, range(100)))
    assert len(begun) < 100


def test_whoever_stops_asking_does_not_wait_for_the_others() -> None:
    begun = []

    def work(part: int) -> None:
        begun.append(part)
        time.sleep(0.01)

    def ask() -> None:
        with threads(2) as each:
            results = each(work, range(100))
            next(results)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask()
    assert len(begun) < 10
