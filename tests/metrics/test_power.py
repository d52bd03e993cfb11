from __future__ import annotations

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.metrics.intervals import newcombe
from leakscope.metrics.power import records_to_rule_out, records_to_show_leak


def intervals(p1, p0, n, confidence, repetitions=1500):
    rng = np.random.default_rng(0)
    draws = zip(rng.binomial(n, p1, repetitions), rng.binomial(n, p0, repetitions), strict=True)
    return [newcombe(h1 / n, n, h0 / n, n, confidence) for h1, h0 in draws]


@pytest.mark.parametrize(
    ("p1", "p0", "alpha"), [(0.6, 0.4, 0.025), (0.6, 0.55, 0.025 / 8), (0.97, 0.9, 0.025)]
)
def test_showing_a_leak_has_the_power_it_claims(p1, p0, alpha):
    n = records_to_show_leak(p1, p0, alpha=alpha)
    found = np.mean([one.low > 0 for one in intervals(p1, p0, n, 1 - 2 * alpha)])
    # The power is known to one point, five of which are allowed, and the normal curve is a guide.
    assert 0.75 <= found <= 0.87


@pytest.mark.parametrize(
    ("p1", "p0", "limit"),
    [(0.5, 0.45, 0.1), (0.25, 0.2, 0.08), (0.2, 0.25, 0.08), (0.06, 0.02, 0.1)],
)
def test_ruling_a_leak_out_has_the_power_it_claims(p1, p0, limit):
    n = records_to_rule_out(p1, p0, limit)
    found = [one.high <= limit and one.low >= -limit for one in intervals(p1, p0, n, 0.95)]
    assert 0.75 <= np.mean(found) <= 0.87


def test_a_tiny_leak_takes_as_many_as_the_normal_curve_says():
    # With many records: (z of the level + z of the power)² · 2p(1 − p) / advantage².
    expected = (1.959964 + 0.841621) ** 2 * 2 * 0.4 * 0.6 / 3.5e-6**2  # 3 · 10¹¹
    assert records_to_show_leak(0.4 + 3.5e-6, 0.4) == pytest.approx(expected, rel=1e-4)


def test_ruling_out_is_the_same_on_either_side():
    assert records_to_rule_out(0.5, 0.45, 0.1) == records_to_rule_out(0.45, 0.5, 0.1)


def test_more_power_a_stricter_level_and_dependent_records_take_more():
    plain = records_to_show_leak(0.6, 0.4)
    assert records_to_show_leak(0.6, 0.4, power=0.95) > plain
    assert records_to_show_leak(0.6, 0.4, alpha=0.001) > plain
    assert records_to_show_leak(0.6, 0.4, overhead=2.5) == np.ceil(2.5 * plain)
    safe = records_to_rule_out(0.5, 0.48, 0.1)
    assert records_to_rule_out(0.5, 0.48, 0.05) > safe
    assert records_to_rule_out(0.5, 0.48, 0.1, overhead=2.0) == 2 * safe


def test_no_number_shows_what_is_not_there():
    assert records_to_show_leak(0.4, 0.4) is None
    assert records_to_show_leak(0.3, 0.4) is None
    assert records_to_show_leak(0.4 + 1e-9, 0.4) is None  # more than anybody has
    assert records_to_rule_out(0.5, 0.4, 0.1) is None
    assert records_to_rule_out(0.2, 0.8, 0.1) is None


def test_rates_without_spread_still_need_records():
    assert 1 < records_to_show_leak(1.0, 0.0) < 10
    assert 20 < records_to_rule_out(0.0, 0.0, 0.1) < 50


@pytest.mark.parametrize(
    "options", [{"alpha": 0}, {"alpha": 0.5}, {"power": 1.0}, {"power": 0.4}, {"overhead": 0.5}]
)
def test_wrong_options_are_refused(options):
    with pytest.raises(InputError, match="A power needs"):
        records_to_show_leak(0.5, 0.4, **options)


def test_a_wrong_confidence_is_refused():
    with pytest.raises(InputError, match="A power needs"):
        records_to_rule_out(0.5, 0.45, 0.1, confidence=1.0)
