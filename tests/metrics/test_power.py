from __future__ import annotations

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.metrics.intervals import newcombe
from leakscope.metrics.power import records_to_decide


def decided(p1, p0, n, limit, alpha, rng, repetitions=1500):
    """How often the lower end is above 0, and the upper end at most the limit."""
    above = within = 0
    for h1, h0 in zip(
        rng.binomial(n, p1, repetitions), rng.binomial(n, p0, repetitions), strict=True
    ):
        above += newcombe(h1 / n, n, h0 / n, n, 1 - 2 * alpha).low > 0
        within += newcombe(h1 / n, n, h0 / n, n).high <= limit
    return above / repetitions, within / repetitions


@pytest.mark.parametrize(
    ("p1", "p0", "limit", "alpha", "side"),
    [
        (0.6, 0.4, 0.1, 0.025, 0),
        (0.6, 0.55, 0.01, 0.025 / 8, 0),
        (0.97, 0.9, 0.05, 0.025, 0),
        (0.5, 0.49, 0.1, 0.025, 1),
        (0.2, 0.25, 0.05, 0.025, 1),
        (0.03, 0.02, 0.1, 0.001, 1),
    ],
)
def test_the_number_has_the_power_it_claims(p1, p0, limit, alpha, side):
    n = records_to_decide(p1 - p0, p1, p0, limit, alpha)
    found = decided(p1, p0, n, limit, alpha, np.random.default_rng(0))[side]
    # The power is known to one point, five of which are allowed, and the normal curve is a guide.
    assert 0.75 <= found <= 0.87


def test_the_cheaper_of_the_two_decisions_counts():
    both = records_to_decide(0.03, 0.5, 0.47, 0.1)
    only_above = records_to_decide(0.03, 0.5, 0.47, 0.0)
    only_within = records_to_decide(-0.03, 0.47, 0.5, 0.04)
    assert both < only_above
    assert both == pytest.approx(only_within, rel=0.05)


def test_more_power_a_stricter_level_and_dependent_records_take_more():
    plain = records_to_decide(0.2, 0.6, 0.4, 0.1)
    assert records_to_decide(0.2, 0.6, 0.4, 0.1, power=0.95) > plain
    assert records_to_decide(0.2, 0.6, 0.4, 0.1, 0.001) > plain
    assert records_to_decide(0.2, 0.6, 0.4, 0.1, overhead=2.5) == np.ceil(2.5 * plain)


def test_no_number_decides_at_0_and_at_the_limit_at_once():
    assert records_to_decide(0.0, 0.4, 0.4, 0.0) is None
    assert records_to_decide(0.0, 0.4, 0.4, 0.1) > 0
    assert records_to_decide(0.1, 0.5, 0.4, 0.1) > 0


def test_rates_without_spread_still_need_records():
    assert 1 < records_to_decide(1.0, 1.0, 0.0, 0.1) < 10
    assert 20 < records_to_decide(0.0, 0.0, 0.0, 0.1) < 50


@pytest.mark.parametrize(
    "options", [{"alpha": 0}, {"alpha": 0.5}, {"power": 1.0}, {"power": 0.4}, {"overhead": 0.5}]
)
def test_wrong_options_are_refused(options):
    with pytest.raises(InputError, match="A power needs"):
        records_to_decide(0.1, 0.5, 0.4, 0.1, **options)
