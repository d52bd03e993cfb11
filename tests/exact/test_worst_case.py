from __future__ import annotations

import json
import math

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.exact import ridge_leakage
from leakscope.exact.bases import draw_members
from leakscope.exact.renyi import epsilon_leakage, renyi_leakage
from leakscope.exact.worst_case import ridge_worst_case


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, X[:, 0] + rng.normal(size=80)


@pytest.fixture(scope="module")
def found(people):
    return ridge_leakage(*people, 20, l2=0.1, noise=0.1, draws=400, workers=1)


@pytest.fixture(scope="module")
def worst(people):
    return ridge_worst_case(
        *people, 20, l2=0.1, noise=0.1, draws=400, records=[3, 50, 7], delta=1e-3
    )


def test_the_same_seed_and_draws_give_the_same_models(found, worst):
    rows = [3, 50, 7]
    for place, order in enumerate((2.0, 8.0)):
        np.testing.assert_allclose(worst.renyi[:, place], found.renyi(order)[rows], rtol=1e-9)
    np.testing.assert_allclose(worst.epsilon, found.epsilon(1e-3)[rows], rtol=1e-9)
    np.testing.assert_allclose(worst.largest_order, found.largest_order[rows], rtol=1e-9)
    np.testing.assert_array_equal(worst.max_divergence, found.max_divergence[rows])
    np.testing.assert_array_equal(worst.records, rows)


@pytest.mark.parametrize("release", [{"grid": 0.2}, {"noise": 0.3}, {"grid": 0.2, "noise": 0.3}])
def test_a_grid_and_noise_are_those_of_ridge_leakage(people, release):
    plain = ridge_leakage(*people, 20, draws=200, seed=4, workers=1, **release)
    again = ridge_worst_case(*people, 20, draws=200, seed=4, orders=(1.5,), **release)
    np.testing.assert_array_equal(again.records, np.arange(80))
    np.testing.assert_allclose(again.renyi[:, 0], plain.renyi(1.5), rtol=1e-9)


def test_replicates_leave_out_a_group_of_draws(people, worst, fit):
    X, y = people
    members = draw_members(80, 20, 400, 0)
    record, group = 50, 6
    with_it, without = [], []
    for draw in np.delete(np.arange(400), np.arange(120, 140)):
        if record not in members[draw]:
            base = members[draw, :-1]
            for last, models in ((record, with_it), (members[draw, -1], without)):
                rows = np.append(base, last)
                models.append(fit(X[rows], y[rows], 20 * 0.1))
    gaussians = []
    for models in (with_it, without):
        gaussians += [np.mean(models, axis=0), np.cov(np.transpose(models)) + 0.01 * np.eye(2)]
    for place, order in enumerate((2.0, 8.0)):
        replicate = worst.renyi_replicates[1, place, group]
        assert replicate == pytest.approx(renyi_leakage(tuple(gaussians), order), rel=1e-8)
    expected = epsilon_leakage(tuple(gaussians), 1e-3)
    assert worst.epsilon_replicates[1, group] == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_intervals_hold_the_truth(people):
    X, y = people
    options = {"l2": 0.1, "noise": 0.2, "records": np.arange(10), "delta": 1e-3}
    truth = ridge_worst_case(X, y, 20, draws=8000, seed=10**6, **options)
    hits = []
    for seed in range(40):
        one = ridge_worst_case(X, y, 20, draws=200, seed=seed, **options)
        low, high = one.epsilon_ends
        lows, highs = one.renyi_ends
        hits.append(
            [
                ((low <= truth.epsilon) & (truth.epsilon <= high)).mean(),
                *((lows <= truth.renyi) & (truth.renyi <= highs)).mean(axis=0),
                one.largest_epsilon.low <= truth.epsilon.max() <= one.largest_epsilon.high,
            ]
        )
    # 95 % of 40 has a deviation of 3.4 %, even if the records of a seed rise and fall together.
    assert (np.mean(hits, axis=0) > 0.76).all()


def test_a_record_whose_models_vary_less_bounds_what_any_model_tells():
    rng = np.random.default_rng(5)
    X = np.append(rng.normal(size=60), 30.0)[:, None]
    y = np.append(rng.normal(size=60), 0.0)
    both = ridge_worst_case(X, y, 10, draws=400, records=[60, 0])
    # The far record fixes the model: with it there is hardly a spread left.
    assert math.isfinite(both.max_divergence[0])
    assert both.max_divergence[1] == math.inf or both.bounded == 2
    assert both.bounded == np.isfinite(both.max_divergence).sum()
    # Then the other direction is the one that has no end.
    plain = ridge_leakage(X, y, 10, draws=400, records=[60])
    assert plain.renyi(50.0, "with")[0] <= plain.max_divergence[0]
    assert plain.largest_order[0] < 2
    assert plain.renyi(2.0, "without")[0] == math.inf
    assert plain.epsilon(1e-9, direction="with")[0] <= plain.max_divergence[0] + 1e-6


def test_what_an_infinite_order_leaves_undecided(people):
    undecided = ridge_worst_case(*people, 20, draws=200, orders=(2.0, 1e6))
    assert np.isinf(undecided.renyi[:, 1]).all()
    np.testing.assert_array_equal(undecided.renyi_ends[0][:, 1], 0.0)
    np.testing.assert_array_equal(undecided.renyi_ends[1][:, 1], np.inf)
    assert np.isfinite(undecided.epsilon_ends[1]).all()


def test_more_records_than_fit_at_a_time(people):
    X = np.tile(people[0], (4, 1)) + np.random.default_rng(1).normal(size=(320, 2))
    y = np.tile(people[1], 4)
    everyone = ridge_worst_case(X, y, 20, draws=60, noise=1.0)
    last = ridge_worst_case(X, y, 20, draws=60, noise=1.0, records=[319])
    assert len(everyone.records) == 320
    np.testing.assert_allclose(everyone.renyi[-1], last.renyi[0], rtol=1e-9)


def test_the_worst_records_come_first(found):
    first = found.worst(4, order=3.0, delta=1e-4)
    order = np.argsort(-found.rho_kl)[:4]
    assert [one.record for one in first] == order.tolist()
    for one, row in zip(first, order, strict=True):
        assert one.rho_kl.value == found.rho_kl[row]
        assert (one.rho_kl.low, one.rho_kl.high) == (found.low[row], found.high[row])
        assert one.renyi == pytest.approx(found.renyi(3.0)[row])
        assert one.epsilon == pytest.approx(found.epsilon(1e-4)[row])
        assert one.largest_order == found.largest_order[row]
    assert len(found.worst(1000)) == 80
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got 0"):
        found.worst(0)


def test_the_largest_is_beside_the_mean(found):
    assert found.largest.value == found.rho_kl.max()
    assert found.largest.high == found.high.max()
    assert found.largest.low < found.low.max()
    assert found.mean.value < found.largest.low
    assert found.to_dict()["largest_rho_kl"] == found.largest.to_dict()


def test_renyi_leakage_grows_with_its_order_from_the_average(found):
    # The larger of two directions is at least half of their sum, which order 1 is.
    assert (found.renyi(1.0001) >= found.rho_kl / 2 * 0.999).all()
    assert (found.renyi(2.0) > found.renyi(1.5)).all()
    assert (found.renyi(1.5, "with") <= found.renyi(1.5)).all()
    assert (found.epsilon(1e-5, "privacy") < found.epsilon(1e-5)).all()


@pytest.mark.slow
def test_the_figures_do_not_depend_on_the_number_of_workers(people, monkeypatch):
    monkeypatch.setattr("leakscope.exact.worst_case._CHUNK", 2)
    X, y = people
    one, two = (ridge_worst_case(X, y, 8, draws=60, workers=workers) for workers in (1, 2))
    np.testing.assert_array_equal(one.renyi, two.renyi)
    np.testing.assert_array_equal(one.epsilon_replicates, two.epsilon_replicates)


@pytest.mark.parametrize("orders", [(), 2.0, (1.0,), ("x",), (2.0, np.inf)])
def test_orders_are_a_list_of_numbers_above_one(people, orders):
    with pytest.raises(InputError, match="orders must be a"):
        ridge_worst_case(*people, 8, draws=60, orders=orders)


def test_models_without_a_density_are_refused(people):
    X, y = people
    with pytest.raises(InputError, match=r"do not vary in every parameter.*; drop features"):
        ridge_worst_case(np.column_stack([X, X[:, 0]]), y, 8, draws=60)


def test_what_makes_no_sense_is_refused(people):
    X, y = people
    for options, says in (
        ({"n": 80}, "option n"),
        ({"draws": 10}, "option draws"),
        ({"l2": -1}, "option l2"),
        ({"noise": -1}, "option noise"),
        ({"grid": 0}, "option grid"),
        ({"seed": -1}, "option seed"),
        ({"records": [90]}, "distinct indices"),
        ({"delta": 1.0}, "option delta"),
        ({"workers": 0}, "option workers"),
        ({"n": 78, "draws": 40}, "left out of .* of 40 draws, where 6 are needed for 2 parameters"),
    ):
        with pytest.raises(InputError, match=says):
            ridge_worst_case(X, y, **({"n": 20} | options))


def test_for_json(worst, found):
    told = json.loads(json.dumps(worst.to_dict()))
    assert told["delta"] == 1e-3
    assert told["bounded"] == worst.bounded
    assert told["largest_epsilon"]["value"] == worst.epsilon.max()
    assert [row["record"] for row in told["records"]] == [3, 50, 7]
    row = told["records"][2]
    assert row["epsilon"]["low"] == worst.epsilon_ends[0][2]
    assert [one["order"] for one in row["renyi"]] == [2.0, 8.0]
    assert row["renyi"][0]["high"] == worst.renyi_ends[1][2, 0]
    one = json.loads(json.dumps(found.worst(1)[0].to_dict()))
    assert one["rho_kl"]["value"] == found.largest.value
    assert one["order"] == 2.0
