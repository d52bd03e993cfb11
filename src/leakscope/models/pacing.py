"""When the next request may go: a token bucket, and how long to wait before trying again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# The first wait before trying again is at most so long, and no wait is longer than the second.
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0


@dataclass(frozen=True)
class Clock:
    """Where time and chance come from: tests bring their own, so that nothing has to be awaited.

    now: seconds that never run backwards; sleep: wait so many; draw: a number from 0 to 1.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random


class TokenBucket:
    """At most ``rate`` tokens a second, and at most ``capacity`` at once after a pause.

    In any t seconds at most rate · t + capacity are taken, where no one takes more than the
    capacity at a time. Who does waits until the bucket is full, and the next pay for the rest.
    """

    def __init__(self, rate: float, capacity: float, clock: Clock) -> None:
        self.rate, self.capacity, self.clock = rate, capacity, clock
        self._level, self._seen = capacity, clock.now()

    def take(self, amount: float) -> None:
        """Take so many tokens, waiting until they are there."""
        self._refill()
        short = min(amount, self.capacity) - self._level
        if short > 0:
            self.clock.sleep(short / self.rate)
            self._refill()
        self._level -= amount

    def _refill(self) -> None:
        now = self.clock.now()
        self._level = min(self._level + (now - self._seen) * self.rate, self.capacity)
        self._seen = now


def backoff(attempt: int, draw: float) -> float:
    """Seconds to wait after failure number ``attempt``, counted from 0: up to twice as many each.

    A random share of the longest wait (from a half of it upwards), so that many who were turned
    away at once do not come back at once.
    """
    longest = min(FIRST_WAIT * 2.0**attempt, LONGEST_WAIT)
    return longest * (1 + draw) / 2


def asked_to_wait(header: str | None) -> float:
    """The seconds that a Retry-After header asks for (RFC 9110, section 10.2.3); 0 without one.

    It holds a number of seconds or a date. What cannot be read asks for nothing.
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 10 else math.inf
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
