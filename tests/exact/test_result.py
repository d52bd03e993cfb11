from __future__ import annotations

import json
import math

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.exact import ridge_leakage
from leakscope.metrics.gaussian import gaussian_kl, jeffreys


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return ridge_leakage(X, X[:, 0] + rng.normal(size=60), 15, draws=400)


def test_rho_kl_is_that_of_the_gaussians(found):
    mean1, cov1, mean0, cov0 = found.gaussians
    np.testing.assert_allclose(jeffreys(*found.gaussians), found.rho_kl, rtol=1e-9)
    both = gaussian_kl(mean1, cov1, mean0, cov0) + gaussian_kl(mean0, cov0, mean1, cov1)
    np.testing.assert_allclose(both, found.rho_kl, rtol=1e-9)


def test_the_chain_of_bounds_holds_for_every_record(found):
    inside = found.prior * (1 - found.prior)
    assert found.prior == 0.25
    assert (found.rho_mi <= inside * found.rho_kl).all()
    assert (found.rho_mi_balanced <= found.rho_kl / 4).all()
    assert (found.rho_mi < found.rho_mi_balanced).all()
    assert (found.total_variation <= found.advantage_bound).all()
    assert (found.rho_mi > 0).all()


def test_the_bound_on_the_advantage_is_half_a_root_and_never_above_one(found):
    np.testing.assert_allclose(found.advantage_bound, np.sqrt(found.rho_kl) / 2)
    X, y = np.ones((6, 1)), np.array([1.0, 2, 4, 8, 16, 32])
    loud = ridge_leakage(X, y, 3, draws=400)
    assert loud.rho_kl[5] > 4
    assert loud.advantage_bound[5] == 1


def test_intervals_are_the_jackknife_of_the_roots(found):
    roots = np.sqrt(found.replicates[3])
    error = math.sqrt(19 / 20 * ((roots - roots.mean()) ** 2).sum())
    half = 2.093024054408263 * error
    assert found.high[3] == pytest.approx((math.sqrt(found.rho_kl[3]) + half) ** 2)
    assert found.low[3] == pytest.approx(max(math.sqrt(found.rho_kl[3]) - half, 0) ** 2)
    assert (found.low <= found.rho_kl).all()
    assert (found.rho_kl <= found.high).all()


def test_means_over_everyone_and_over_some(found):
    assert found.mean.value == pytest.approx(found.rho_kl.mean())
    assert found.mean.low < found.mean.value < found.mean.high
    mask = np.arange(60) < 7
    assert found.mean_of(mask) == found.mean_of(np.arange(7))
    assert found.mean_of(mask).value == pytest.approx(found.rho_kl[:7].mean())
    assert found.mean_of([5]).high == pytest.approx(found.high[5])
    for rows in (np.zeros(60, dtype=bool), [], [99], [0.5], np.ones(7, dtype=bool)):
        with pytest.raises(InputError, match="The records must be"):
            found.mean_of(rows)


def test_the_mean_of_a_sample_is_less_sure_of_the_population():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = rng.normal(size=200)
    everyone = ridge_leakage(X, y, 30, draws=400)
    assert everyone.population_mean == everyone.mean
    some = ridge_leakage(X, y, 30, draws=400, records=np.arange(40))
    assert some.population_mean.value == some.mean.value
    root, draws, both = (
        math.sqrt(end) for end in (some.mean.value, some.mean.high, some.population_mean.high)
    )
    sampling = some.rho_kl.var(ddof=1) / 40 * (1 - 40 / 200) / (4 * some.mean.value)
    expected = (draws - root) ** 2 + 2.093024054408263**2 * sampling
    assert (both - root) ** 2 == pytest.approx(expected)
    single = ridge_leakage(X, y, 30, draws=400, records=[3]).population_mean
    assert (single.low, single.high) == (0, math.inf)


@pytest.mark.slow
def test_intervals_for_the_population_cover_over_samples_of_records():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    y = rng.normal(size=400)
    truth = ridge_leakage(X, y, 30, draws=8000, seed=10**6).mean.value
    covered = []
    for seed in range(100):
        chosen = np.random.default_rng(seed).choice(400, 100, replace=False)
        one = ridge_leakage(X, y, 30, draws=200, records=chosen, seed=seed, workers=1)
        covered.append(one.population_mean.low <= truth <= one.population_mean.high)
    # 95 % of 100 has a deviation of 2.2 %: five and a half of them.
    assert np.mean(covered) > 0.83


def test_for_json(found):
    told = json.loads(json.dumps(found.to_dict()))
    assert told["records"] == 60
    assert told["rho_kl"] == found.mean.to_dict()
    assert told["total_variation"] == pytest.approx(found.total_variation.mean())
    assert told["n"] / told["population"] == found.prior
