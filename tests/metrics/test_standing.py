from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from leakscope.errors import InputError
from leakscope.metrics.rates import effective_size
from leakscope.metrics.standing import clopper_pearson, share_at_least


@pytest.mark.parametrize("n", [1, 2, 7, 50, 1000])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_ends_are_those_of_the_exact_test(n: int, confidence: float) -> None:
    # At the lower end so many hits or more have just the chance of one tail, at the upper so few.
    tail = (1 - confidence) / 2
    for hits in sorted({0, 1, n // 3, n - 1, n}):
        found = clopper_pearson(hits, n, confidence)
        assert found.value == hits / n
        assert found.low <= found.value <= found.high
        if hits > 0:
            assert binom.sf(hits - 1, n, found.low) == pytest.approx(tail, rel=1e-9)
        else:
            assert found.low == 0.0
        if hits < n:
            assert binom.cdf(hits, n, found.high) == pytest.approx(tail, rel=1e-9)
        else:
            assert found.high == 1.0


@pytest.mark.parametrize("rate", [0.003, 0.02, 0.3, 0.9])
def test_it_covers_at_least_as_often_as_it_says(rate: float) -> None:
    # Over every count there can be, so that no chance is left.
    n = 120
    covered = sum(
        binom.pmf(hits, n, rate)
        for hits in range(n + 1)
        if clopper_pearson(hits, n).low <= rate <= clopper_pearson(hits, n).high
    )
    assert covered >= 0.95


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(hits: int, n: int) -> None:
    with pytest.raises(InputError, match="0 <= hits <= n"):
        clopper_pearson(hits, n)


def test_ties_count_as_high() -> None:
    others = np.array([0.0, 1.0, 1.0, 2.0])
    assert share_at_least(1.0, others) == clopper_pearson(3, 4)
    assert share_at_least(1.5, others) == clopper_pearson(1, 4)
    assert share_at_least(3.0, others) == clopper_pearson(0, 4)
    assert share_at_least(-1.0, others) == clopper_pearson(4, 4)


def test_without_others_there_is_nothing_to_say() -> None:
    assert math.isnan(share_at_least(1.0, np.empty(0)).value)


def test_rows_of_one_person_and_taught_attacks_widen_it() -> None:
    rng = np.random.default_rng(0)
    others = np.repeat(rng.normal(size=50), 4)
    person = np.repeat(np.arange(50), 4)
    alone = share_at_least(1.0, others)
    together = share_at_least(1.0, others, person)
    taught = share_at_least(1.0, others, person, 2.0)
    assert alone.value == together.value == taught.value
    n = effective_size(others >= 1.0, person)
    assert n < 80  # some 50 persons stand behind the 200 rows
    expected = clopper_pearson(alone.value * n, n)
    assert (together.low, together.high) == (expected.low, expected.high)
    widths = [one.high - one.low for one in (alone, together, taught)]
    assert widths == sorted(widths)
    assert widths[0] < 0.7 * widths[1] < 0.7 * widths[2]
