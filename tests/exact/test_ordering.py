from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.exact.ordering import (
    Measure,
    first_of,
    influence_of,
    influence_order,
    most_influential,
    ranks_of,
)

MEASURES: list[Measure] = ["probability", "log-loss", "squared-error"]


def exactly(measure: Measure, base: float, change: float, digits: int) -> float:
    """The influence from its definition, with this many digits on the way."""
    with localcontext() as context:
        context.prec = digits
        before, after = Decimal(base), Decimal(base) + Decimal(change)
        if measure == "squared-error":
            return float(after**2 - before**2)
        odds = [1 / (1 + (-logit).exp()) for logit in (before, after)]
        return float(odds[0] - odds[1] if measure == "probability" else odds[0].ln() - odds[1].ln())


numbers = st.floats(-100, 100).filter(lambda x: abs(x) > 1e-50 or x == 0)
small = st.floats(-1e-6, 1e-6).filter(lambda x: abs(x) > 1e-50)


@pytest.mark.parametrize("measure", MEASURES)
@given(base=numbers, change=numbers | small)
def test_influences_keep_their_digits(measure: Measure, base: float, change: float) -> None:
    found = influence_of(measure, np.array([[base]]), np.array([[change]]))
    expected = exactly(measure, base, change, 150)
    # For squared errors, 2e + Δ may cancel: its error is that of the numbers themselves.
    scale = abs(change) * abs(base) if measure == "squared-error" else 0.0
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-12, atol=1e-15 * scale + 1e-300)


@pytest.mark.parametrize("measure", ["probability", "log-loss"])
@pytest.mark.parametrize("base", [-800.0, -30.0, 0.0, 30.0, 650.0, 800.0])
def test_changes_that_overflow_are_right(measure: Measure, base: float) -> None:
    changes = np.array([-2000.0, -900.0, -720.0, 0.0, 720.0, 900.0, 2000.0])
    found = influence_of(measure, np.array([[base]]), changes[None])[0]
    expected = [exactly(measure, base, change, 420) for change in changes]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)


def true_order(measure: Measure, base: float, changes: np.ndarray) -> list[int]:
    """Records by |influence| in numbers of any size, then by |change|, then by number.

    Of probabilities the smaller of P and 1 − P is taken, and of the log-loss ln(1 + x) ≈ x − x²/2,
    so that a hundred digits suffice.
    """
    with localcontext() as context:
        context.prec = 100
        sizes = []
        for change in changes:
            towards = Decimal(change) if base >= 0 else -Decimal(change)
            odds = [(-abs(Decimal(base))).exp(), (-abs(Decimal(base)) - towards).exp()]
            if measure == "probability":
                before, after = (x / (1 + x) for x in odds)
            else:
                before, after = (x - x**2 / 2 for x in odds)
            sizes.append(abs(before - after))
        keys = [(-sizes[j], -abs(changes[j]), j) for j in range(len(changes))]
    return [key[2] for key in sorted(keys)]


@pytest.mark.parametrize("base", [10_000.0, -10_000.0])
def test_saturated_predictions_are_ordered_as_numbers_of_any_size_are(base: float) -> None:
    changes = np.array([0.3, -0.2, 0.0, 2.0, -0.25, 0.3, 1e-9, -3.0, 60.0, 0.0])
    assert (influence_of("probability", np.array([[base]]), changes[None]) == 0).all()
    orders = influence_order("probability", np.array([[base]]), changes[None])
    expected = true_order("probability", base, changes)
    assert first_of(orders, changes[None], 10)[0].tolist() == expected
    assert len(set(orders[0].tolist())) == 8  # 0.3 and 0 occur twice, nothing else is tied


def test_a_saturated_log_loss_is_ordered_as_numbers_of_any_size_are() -> None:
    changes = np.array([0.3, -0.2, 0.0, 2.0, -0.25, 0.3, 1e-9, -3.0, 60.0, 0.0])
    orders = influence_order("log-loss", np.array([[10_000.0]]), changes[None])
    expected = true_order("log-loss", 10_000.0, changes)
    assert first_of(orders, changes[None], 10)[0].tolist() == expected
    # An unlikely label does not saturate: its log-loss changes by −Δ.
    orders = influence_order("log-loss", np.array([[-10_000.0]]), changes[None])
    np.testing.assert_allclose(orders[0], np.abs(changes), rtol=1e-12)
    # Changes as large as the log-odds leave the region in which ln(1 + u) is u.
    orders = influence_order("log-loss", np.array([[700.0]]), np.array([[-690.0, -720.0, -10.0]]))
    expected_sizes = [np.log1p(np.exp(-10.0)), 20.0 + np.log1p(np.exp(-20.0))]
    np.testing.assert_allclose(orders[0, :2] - 700.0, np.log(expected_sizes), rtol=1e-9)
    assert orders[0].argsort().tolist() == [2, 0, 1]


def test_probabilities_that_round_to_the_same_are_ordered_by_the_change() -> None:
    """From log-odds of 5, −50 and −60 both lead to 0: the larger change is the larger influence."""
    changes = np.array([[-50.0, -60.0, -50.0, -55.0]])
    orders = influence_order("probability", np.array([[5.0]]), changes)
    assert len(set(orders[0].tolist())) == 1
    assert first_of(orders, changes, 3).tolist() == [[1, 3, 0]]
    assert ranks_of(np.repeat(orders, 4, 0), np.repeat(changes, 4, 0), np.arange(4)).tolist() == [
        3, 1, 4, 2,
    ]  # fmt: skip


@pytest.mark.parametrize("base", [5.0, -5.0, 10_000.0, -10_000.0])
def test_a_larger_change_to_the_same_side_never_comes_later(base: float) -> None:
    rng = np.random.default_rng(0)
    changes = np.sort(rng.uniform(-3 * abs(base), 0, size=2000)) * np.sign(base)
    for measure in ("probability", "log-loss"):
        orders = influence_order(measure, np.array([[base]]), changes[None])
        assert first_of(orders, changes[None], 2000)[0].tolist() == list(range(2000))


rows = st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.0, 0.5]), min_size=6, max_size=6)


@given(st.lists(rows, min_size=1, max_size=4), st.integers(1, 6))
def test_the_first_and_the_ranks_are_those_of_a_plain_sort(
    values: list[list[float]], k: int
) -> None:
    changes = np.array(values)
    orders = np.round(np.abs(changes))  # 0.5 ties with 0: decided by the change
    for row in range(len(values)):
        plain = sorted(range(6), key=lambda j: (-orders[row, j], -abs(changes[row, j]), j))
        assert first_of(orders, changes, k)[row].tolist() == plain[:k]
        for record in range(6):
            where = np.full(len(values), record)
            assert ranks_of(orders, changes, where)[row] == plain.index(record) + 1


bases = st.sampled_from([-1e4, -3.0, -0.1, 0.0, 0.1, 3.0, 1e4])
ties = st.sampled_from([0.0, 0.1, -0.1, 50.0, -50.0, -60.0])
rows_of_nine = st.lists(st.floats(-5, 5) | ties, min_size=9, max_size=9)


@pytest.mark.parametrize("measure", MEASURES)
@given(
    predictions=st.lists(st.tuples(bases, rows_of_nine), min_size=1, max_size=3),
    k=st.integers(1, 9),
)
def test_the_most_influential_are_the_first_of_all(
    measure: Measure, predictions: list[tuple[float, list[float]]], k: int
) -> None:
    base = np.array([[one] for one, _ in predictions])
    changes = np.array([row for _, row in predictions])
    expected = first_of(influence_order(measure, base, changes), changes, k)
    assert most_influential(measure, base, changes, k).tolist() == expected.tolist()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("measure", MEASURES)
def test_the_most_influential_of_many_are_the_first_of_all(measure: Measure, k: int) -> None:
    rng = np.random.default_rng(1)
    base, changes = rng.normal(size=(50, 1)), rng.normal(size=(50, 200))
    changes[:10, :20] = changes[:10].max(axis=1, keepdims=True)  # ties at one end
    changes[5:15, 7:9] = changes[5:15].min(axis=1, keepdims=True)  # and at the other
    expected = first_of(influence_order(measure, base, changes), changes, k)
    assert (most_influential(measure, base, changes, k) == expected).all()
