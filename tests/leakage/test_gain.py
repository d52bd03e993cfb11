from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from leakscope.errors import InputError
from leakscope.leakage.gain import accuracy_range, jensen_shannon, optimal_gain, output_gain

UNIFORM = np.full(4, 0.25)
P = np.array([0.5, 0.25, 0.125, 0.125])


def true_js(shift: float) -> float:
    """Of N(0, 1) and N(shift, 1)."""

    def inside(x: float) -> float:
        p, q = norm.pdf(x), norm.pdf(x - shift)
        m = (p + q) / 2
        return 0.5 * (p * math.log(p / m) + q * math.log(q / m))

    return float(quad(inside, -8, 8 + shift)[0])


def drawn(rng: np.random.Generator, n: int, shift: float, width: int = 1, m: int | None = None):
    members = np.arange(n + (m or n)) < n
    outputs = rng.normal(size=(len(members), width))
    outputs[:, 0] += shift * members
    return outputs, members


def test_the_divergence_of_two_distributions() -> None:
    """The golden values: by hand, JS and the gain of the best adversary, who is right in 62.5 %."""
    js = jensen_shannon(P, UNIFORM)
    assert js == pytest.approx(0.042474759199, abs=1e-12)
    assert optimal_gain(js) == pytest.approx(-1.301344842722, abs=1e-12)
    low, high = accuracy_range(js)
    assert low <= 0.625 <= high
    assert jensen_shannon(P, P) == pytest.approx(0.0, abs=1e-15)
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(math.log(2))
    assert accuracy_range(math.log(2)) == pytest.approx((1.0, 1.0))
    assert accuracy_range(-0.01) == (0.5, 0.5)


def test_the_range_of_the_accuracy_is_reached_at_both_ends() -> None:
    """A channel that erases reaches the lower end, one that is wrong with chance e the upper."""
    erased = jensen_shannon([0.3, 0.0, 0.7], [0.0, 0.3, 0.7])  # TV = .3
    assert accuracy_range(erased)[0] == pytest.approx(0.65, abs=1e-9)
    wrong = jensen_shannon([0.8, 0.2], [0.2, 0.8])  # accuracy .8
    assert accuracy_range(wrong)[1] == pytest.approx(0.8, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["histogram", "neighbours"])
@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_both_estimates_are_near_the_truth(method: str, shift: float) -> None:
    rng, truth = np.random.default_rng(0), true_js(shift)
    found = [
        output_gain(*drawn(rng, 1000, shift), method, permutations=1).js.value  # type: ignore[arg-type]
        for _ in range(20)
    ]
    error = np.std(found) / math.sqrt(20)
    # Bins lose a little of what there is.
    assert np.mean(found) == pytest.approx(truth, abs=5 * error + 0.03 * truth + 2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["histogram", "neighbours"])
def test_intervals_hold_the_truth(method: str) -> None:
    rng, truth, held = np.random.default_rng(1), true_js(1.0), 0
    for _ in range(60):
        found = output_gain(*drawn(rng, 400, 1.0), method, permutations=1).js  # type: ignore[arg-type]
        assert found.low <= found.value <= found.high
        held += found.low <= truth <= found.high
    assert held >= 48  # of 60; at 95 % fewer have a chance of 1e-5


def test_nothing_is_found_where_there_is_nothing() -> None:
    rng = np.random.default_rng(2)
    p_values = [
        output_gain(*drawn(rng, 200, 0.0), permutations=19, seed=seed).null.p_value
        for seed in range(40)
    ]
    assert np.mean(np.array(p_values) <= 0.05) < 0.25
    leaking = output_gain(*drawn(rng, 400, 1.0), permutations=19)
    assert leaking.null.p_value == 0.05
    assert leaking.null.mean == pytest.approx(0.0, abs=0.01)
    assert leaking.gain.value == pytest.approx(2 * leaking.js.value - math.log(4))
    told = leaking.to_dict()
    assert told["method"] == "histogram"
    assert 0.5 < told["accuracy_least"] < norm.cdf(0.5) < told["accuracy_most"]


def test_no_divergence_is_below_zero() -> None:
    rng, found = np.random.default_rng(5), []
    for method in ("histogram", "neighbours"):
        for seed in range(10):
            one = output_gain(*drawn(rng, 100, 0.0), method, permutations=9, seed=seed)  # type: ignore[arg-type]
            assert 0 <= one.js.low <= one.js.value <= one.js.high <= math.log(2)
            assert one.null.mean >= 0
            assert one.null.high >= 0
            assert one.gain.value >= -math.log(4)
            found.append(one.js.value)
    assert 0 in found


def test_neighbours_see_what_no_single_column_shows() -> None:
    rng = np.random.default_rng(3)
    members = np.arange(2000) < 1000
    angle = rng.uniform(0, 2 * math.pi, 2000)
    radius = np.where(members, 1.0, 2.0) + 0.05 * rng.normal(size=2000)
    ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    assert output_gain(ring, members, "neighbours", permutations=1).js.value > 0.6


def test_sides_of_unequal_size_and_outputs_that_are_equal() -> None:
    rng = np.random.default_rng(4)
    outputs, members = drawn(rng, 300, 1.0, m=900)
    for method in ("histogram", "neighbours"):
        found = output_gain(outputs, members, method, permutations=1)  # type: ignore[arg-type]
        assert found.js.value == pytest.approx(true_js(1.0), abs=0.05)
        constant = output_gain(np.ones(len(members)), members, method, permutations=9)  # type: ignore[arg-type]
        assert abs(constant.js.value) < 0.02
    again = output_gain(outputs, members, "neighbours", permutations=3, seed=1)
    assert again == output_gain(outputs, members, "neighbours", permutations=3, seed=1)


@pytest.mark.parametrize(
    ("outputs", "members", "options", "message"),
    [
        (np.zeros((100, 2)), np.arange(100) < 50, {}, "a histogram is of one number"),
        (np.full(100, np.nan), np.arange(100) < 50, {}, "must be finite"),
        (np.zeros(100), np.arange(100), {}, "true or false for each of the 100"),
        (np.zeros(100), np.arange(100) < 10, {}, "one side has 10"),
        (np.zeros(100), np.arange(100) < 50, {"method": "kernel"}, "method cannot be 'kernel'"),
        (np.zeros(100), np.arange(100) < 50, {"bins": 1}, "bins"),
        (np.zeros(100), np.arange(100) < 50, {"permutations": 0}, "permutations"),
    ],
)
def test_what_cannot_be_estimated_is_said(outputs, members, options, message) -> None:
    with pytest.raises(InputError, match=f"(?i){message}"):
        output_gain(outputs, members, **options)


@pytest.mark.parametrize(
    ("p", "q"), [([0.5, 0.6], [0.5, 0.5]), ([1.0], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5])]
)
def test_what_is_no_distribution_is_refused(p, q) -> None:
    with pytest.raises(InputError):
        jensen_shannon(p, q)
