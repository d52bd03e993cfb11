from __future__ import annotations

import math
import random
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.models.pacing import Clock, TokenBucket, asked_to_wait, backoff
from serving import FakeTime


def test_the_usual_clock_is_the_systems() -> None:
    clock = Clock()
    assert clock.now is time.monotonic
    assert clock.sleep is time.sleep
    assert 0 <= clock.draw() < 1


def test_a_steady_rate_is_kept_from_the_second_on() -> None:
    fake = FakeTime()
    bucket = TokenBucket(4.0, 1.0, fake.clock)
    for _ in range(5):
        bucket.take(1)
    assert fake.slept == pytest.approx([0.25] * 4)


def test_after_a_pause_no_more_than_the_capacity_goes_at_once() -> None:
    fake = FakeTime()
    bucket = TokenBucket(2.0, 3.0, fake.clock)
    for _ in range(3):
        bucket.take(1)
    assert fake.slept == []
    fake.time += 1000
    for _ in range(4):
        bucket.take(1)
    assert fake.slept == pytest.approx([0.5])


def test_who_takes_more_than_the_bucket_holds_makes_the_next_wait() -> None:
    fake = FakeTime()
    bucket = TokenBucket(10.0, 5.0, fake.clock)
    bucket.take(25)  # the bucket is full: it goes at once, and 20 are owed
    assert fake.slept == []
    bucket.take(5)
    assert fake.slept == pytest.approx([2.5])


@given(
    st.lists(st.tuples(st.integers(1, 7), st.floats(0, 3)), min_size=1, max_size=40),
    st.floats(0.5, 20),
)
def test_no_stretch_of_time_sees_more_than_rate_times_time_and_the_capacity(
    takes: list[tuple[int, float]], rate: float
) -> None:
    capacity = 7.0
    fake = FakeTime()
    bucket = TokenBucket(rate, capacity, fake.clock)
    log = []
    for amount, pause in takes:
        fake.time += pause
        bucket.take(amount)
        log.append((fake.time, amount))
    for start in range(len(log)):
        for end in range(start, len(log)):
            taken = sum(amount for _, amount in log[start : end + 1])
            assert taken <= rate * (log[end][0] - log[start][0]) + capacity + 1e-6


def test_waits_double_up_to_a_limit_and_are_drawn_from_the_upper_half() -> None:
    assert [backoff(attempt, 1.0) for attempt in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert [backoff(attempt, 0.0) for attempt in range(4)] == [0.25, 0.5, 1.0, 2.0]
    assert backoff(50, 1.0) == 60.0
    drawn = [backoff(3, random.Random(seed).random()) for seed in range(50)]
    assert 2.0 <= min(drawn) < max(drawn) <= 4.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("-3", 0.0),
        ("soon", 0.0),
        ("9" * 5000, math.inf),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.0),
    ],
)
def test_retry_after_is_read(header: str | None, seconds: float) -> None:
    assert asked_to_wait(header) == seconds


def test_retry_after_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 < asked_to_wait(later) <= 90
