from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.leakage import expected_by_chance, jeffreys, parameter_leakage
from leakscope.leakage.plans import Design
from leakscope.trials import fixed_size


def fitted(one, other):
    return jeffreys(one.mean(axis=0), np.cov(one.T), other.mean(axis=0), np.cov(other.T))


def test_the_expectation_by_chance_is_the_formula_of_equal_sides():
    for p, models in ((1, 20), (3, 50), (10, 500)):
        formula = (p * (p + 1) + 2 * p * (models - 1) / models) / (models - p - 2)
        assert expected_by_chance(p, models, models) == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize(("m1", "m0"), [(30, 30), (20, 60)])
def test_the_expectation_by_chance_is_what_independent_draws_show(m1, m0):
    rng = np.random.default_rng(0)
    moments = []
    for models in (m1, m0):
        draws = rng.normal(size=(4000, models, 3))
        mean = draws.mean(axis=1)
        centred = draws - mean[:, None]
        moments += [mean, centred.transpose(0, 2, 1) @ centred / (models - 1)]
    found = jeffreys(*moments)
    error = 6 * np.std(found) / np.sqrt(len(found))
    assert expected_by_chance(3, m1, m0) == pytest.approx(np.mean(found), abs=error)


def test_the_expectation_needs_more_models_than_parameters():
    with pytest.raises(InputError, match="more than 5 models"):
        expected_by_chance(3, 5, 100)


def test_each_record_is_fitted_with_and_without(halves):
    rng = np.random.default_rng(1)
    membership = halves(rng, 80, 6, pairs=False)
    scale = [1e-6, 1e6]
    parameters = (rng.normal(size=(80, 2)) + membership[:, :2]) * scale + [5.0, -3.0]
    found = parameter_leakage(parameters, membership, permutations=2)
    for record in range(6):
        side = membership[:, record]
        one, other = parameters[side] / scale, parameters[~side] / scale
        chance = expected_by_chance(2, side.sum(), (~side).sum())
        expected = max(fitted(one, other) - chance, 0.0)
        assert found.records[record] == pytest.approx(expected, rel=1e-6)


def test_leakage_is_found_where_it_is_and_nothing_where_it_is_not(halves):
    rng = np.random.default_rng(2)
    membership = halves(rng, 600, 8, pairs=False)
    parameters = rng.normal(size=(600, 3))
    parameters[:, 0] += 1.0 * membership[:, 0]
    found = parameter_leakage(
        parameters, membership, permutations=19, groups={"first": np.arange(8) == 0}
    )
    assert found.low[0] <= jeffreys(1, 1, 0, 1) <= found.high[0]
    others = found.groups[0]
    assert (others.value, others.n) == ("False", 7)
    assert others.mean.low <= 0 <= others.mean.high
    assert found.null.p_value == 1 / 20
    # Shuffled models are independent of their records: what is left of chance averages out.
    assert found.null.mean == pytest.approx(0, abs=0.02)
    report = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert report["measure"] == "parameter_rho_kl"
    expected = np.sqrt(found.mean.value + found.underestimate) / 2
    assert report["bound"] == pytest.approx(expected)


def test_no_leakage_is_no_ground_for_a_bound(halves):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = parameter_leakage(
            rng.normal(size=(80, 1)), halves(rng, 80, 4), permutations=1, seed=seed
        )
        assert 0 == found.mean.low <= found.mean.value <= found.mean.high
        if found.mean.value == 0 and found.underestimate == 0:
            assert np.isnan([found.bound, found.bound_low, found.bound_high]).all()
            return
    raise AssertionError("twenty estimates without leakage, and none below chance")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": np.zeros(40)}, r"got shape \(40,\)"),
        ({"parameters": np.full((40, 1), np.inf)}, "finite"),
        ({"parameters": np.zeros((39, 1))}, "is of 40 models, but 39 were observed"),
        ({"parameters": np.ones((40, 2))}, "depend on each other"),
        ({"parameters": np.arange(40.0)[:, None] * [1, 2]}, "depend on each other"),
        (
            {"parameters": np.random.default_rng(0).normal(size=(40, 9))},
            "too many parameters for a Gaussian fit, 9 with only 20 models .*where 44 are needed",
        ),
        ({"membership": np.zeros((40, 4), bool)}, "Record 0 is a member of 0 of 40"),
    ],
)
def test_what_cannot_be_fitted_is_refused(halves, change, message):
    rng = np.random.default_rng(3)
    given = {"parameters": rng.normal(size=(40, 1)), "membership": halves(rng, 40, 4)}
    with pytest.raises(InputError, match=message):
        parameter_leakage(**{**given, **change})


def test_models_in_pairs_are_compared_with_pairs():
    # Means of half of 80 records: ρ is g'G⁻¹g / (n(1 − n/N)), on average p/20 (large n).
    rng = np.random.default_rng(4)
    records = rng.normal(size=(80, 4))
    records -= records.mean(axis=0)

    def deal(seed):
        return fixed_size(80, 40, 96, seed) == 1

    membership = deal(0)
    parameters = membership @ records / 40
    parameters += 1e-3 * rng.normal(size=parameters.shape)  # else a model is minus its twin
    design = Design(np.arange(96) // 2, deal)
    found = parameter_leakage(parameters, membership, design=design, seed=1)
    assert found.mean.low <= 4 / 20 <= found.mean.high
    assert found.mean.low > 0
    assert abs(found.null.mean) < 1e-12
    assert "dealt anew" in found.note
    # To subtract what independent models show is to subtract too much, and the upper end allows
    # for what shuffled membership shows of that.
    blind = parameter_leakage(parameters, membership, seed=1)
    assert blind.mean.high - blind.underestimate < 4 / 20 <= blind.mean.high
