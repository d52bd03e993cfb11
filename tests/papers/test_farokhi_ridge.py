from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from leakscope.exact import ridge_leakage
from leakscope.metrics import membership_experiment
from leakscope.papers import farokhi_ridge
from leakscope.papers.experiment import Setting
from leakscope.papers.farokhi_ridge import (
    Adults,
    Case,
    Size,
    advantages_of,
    box,
    large_sample_mean,
    measure,
    threshold_advantages,
)


@pytest.fixture
def adults() -> Adults:
    """People of four features, of whom every third is asked about."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(float)
    return Adults(X, y, np.arange(0, 90, 3))


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setitem(farokhi_ridge.SIZES, "quick", Size(30, 60, 25))
    return Setting(seed=3, workers=1)


def test_a_row_holds_the_means_over_the_records_asked_about(
    adults: Adults, setting: Setting
) -> None:
    case = Case(12, features=3, l2=0.01, sigma=0.2)
    found = ridge_leakage(
        adults.X[:, :3], adults.y, 12, l2=0.01, noise=0.2, draws=60, records=adults.asked, seed=3
    )
    row = measure(adults, case, setting).row
    assert row["rho_kl"] == pytest.approx(found.rho_kl.mean(), rel=1e-12)
    assert (row["rho_kl_low"], row["rho_kl_high"]) == pytest.approx(
        (found.population_mean.low, found.population_mean.high), rel=1e-12
    )
    for key in ("rho_mi", "rho_mi_balanced", "total_variation", "advantage_bound"):
        assert row[key] == pytest.approx(getattr(found, key).mean(), rel=1e-12)
    assert row["prior"] == 12 / 90


def test_repetitions_multiply_training_sets(adults: Adults, setting: Setting) -> None:
    thrice = Setting(seed=3, seeds=3, workers=1)
    point = measure(adults, Case(10, features=2), thrice)
    assert point.advantages.shape == (75,)
    assert np.array_equal(point.advantages[:25], measure(adults, Case(10, 2), setting).advantages)
    found = ridge_leakage(adults.X[:, :2], adults.y, 10, draws=180, records=adults.asked, seed=3)
    assert point.row["rho_kl"] == pytest.approx(found.rho_kl.mean(), rel=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_the_adversary_is_that_of_the_membership_experiment(adults: Adults, l2: float) -> None:
    n, models = 9, 40
    found = threshold_advantages(adults.X, adults.y, Case(n, 4, l2), models, _rng())
    rng = _rng()
    for advantage in found:
        chosen = rng.choice(90, 2 * n, replace=False)
        X, y = adults.X[chosen], adults.y[chosen]
        model = Ridge(alpha=n * l2, fit_intercept=False, solver="svd").fit(X[:n], y[:n])
        losses = np.square(y - model.predict(X))
        members = np.arange(2 * n) < n
        slow = membership_experiment(losses[None], members[None]).advantages[0]
        assert advantage == pytest.approx(slow, abs=1e-12)


def test_blocks_change_nothing(adults: Adults, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(9, 4, sigma=0.5)
    whole = threshold_advantages(adults.X, adults.y, case, 23, _rng())
    monkeypatch.setattr(farokhi_ridge, "_BLOCK", 2 * 9 * 4 * 5)
    assert np.array_equal(threshold_advantages(adults.X, adults.y, case, 23, _rng()), whole)
    assert len(set(whole)) > 5


def test_a_release_hides_members(adults: Adults) -> None:
    # Six members and four parameters: an exact release gives them away.
    exact = threshold_advantages(adults.X, adults.y, Case(6, 4), 400, _rng()).mean()
    assert exact > 0.3
    for hidden in (Case(6, 4, sigma=1e3), Case(6, 4, grid=1e3)):
        found = threshold_advantages(adults.X, adults.y, hidden, 400, _rng())
        assert abs(found.mean()) < 5 * found.std() / 20
        assert abs(found.mean()) < exact / 2


def test_losses_at_most_the_average_of_members_accuse() -> None:
    losses = np.array([[1.0, 2.0, 9.0, 0.0, 4.0, 5.0], [3.0, 3.0, 3.0, 3.0, 9.0, 9.0]])
    # Averages 4 and 3: two of three members and two of three others; all members and one other.
    assert advantages_of(losses, 3) == pytest.approx([0.0, 2 / 3])


def test_a_mean_below_its_smallest_by_rounding_parts_no_ties() -> None:
    tied = np.full((1, 6), 0.1)
    assert tied[0, :3].mean() != 0.1  # the rounding that is meant
    assert advantages_of(tied, 3) == pytest.approx([0.0])


def test_a_box_is_of_absolute_values_and_the_mean_is_not() -> None:
    found = box(np.array([-0.4, -0.2, 0.0, 0.2, 0.4]))
    assert found["advantage_median"] == pytest.approx(0.2)
    assert (found["advantage_q1"], found["advantage_q3"]) == pytest.approx((0.2, 0.4))
    assert found["advantage_signed"] == pytest.approx(0.0)
    # Student's quantile with 4 degrees of freedom is 2.776445, the variance 0.1.
    half = 2.7764451051977987 * np.sqrt(0.1 / 5)
    assert found["advantage_signed_high"] == pytest.approx(half)
    assert found["advantage_signed_low"] == pytest.approx(-half)


def test_the_law_of_large_samples_averages_to_the_number_of_parameters(adults: Adults) -> None:
    everybody = Adults(adults.X, adults.y, np.arange(90))
    assert large_sample_mean(everybody, Case(30, 4)) == pytest.approx(4 / (30 * (1 - 30 / 90)))
    some = large_sample_mean(adults, Case(30, 4))
    assert some == pytest.approx(2 * large_sample_mean(adults, Case(45, 4)) * 45 / 30 * 0.375)


@pytest.mark.slow
def test_the_scale_says_who_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(farokhi_ridge.SIZES, "quick", Size(100, 60, 25))
    few, same, other = (Adults.load(Setting(seed=seed)) for seed in (0, 0, 1))
    assert few.X.shape == (48842, 14)
    assert set(few.y) == {0.0, 1.0}
    assert len(set(few.asked)) == 100
    assert np.array_equal(few.asked, same.asked)
    assert not np.array_equal(few.asked, other.asked)
    assert len(Adults.load(Setting("full")).asked) == 48842
    assert np.allclose(np.square(few.of(2)).sum(axis=0), 1.0)


def _rng() -> np.random.Generator:
    return np.random.default_rng(11)
