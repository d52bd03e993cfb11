from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from leakscope.leakage import classical_sigma, gaussian_kl
from leakscope.papers import farokhi_errata as errata
from leakscope.papers import farokhi_errata_densities as densities
from leakscope.papers import farokhi_errata_universes as universes
from leakscope.papers.experiment import Setting
from leakscope.papers.farokhi_errata_row import Erratum
from leakscope.registry import lookup

ROWS = {row["erratum"]: row for row in errata.list_errata(Setting()).rows}

SAID = Erratum(
    where="here",
    quantity="a number",
    printed="1",
    right="2",
    example="one",
    printed_value=1.0,
    right_value=2.0,
    truth=2.0,
)


def test_the_experiment_is_registered_under_its_own_name() -> None:
    entry = lookup("experiment", "farokhi-errata")
    assert entry.thing is errata.list_errata
    assert entry.thing(Setting()).experiment == "farokhi-errata"
    assert entry.paper == entry.thing(Setting()).paper


def test_it_is_json_without_nan() -> None:
    found = errata.list_errata(Setting()).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [row["erratum"] for row in found["rows"]] == list(range(1, 12))
    assert {len(row) for row in found["rows"]} == {13}


def test_each_printed_statement_fails_and_each_correction_holds() -> None:
    assert [row["holds"] for row in ROWS.values()] == [False] * 11
    assert [row["right_holds"] for row in ROWS.values()] == [True] * 11


def test_the_paper_s_rows_are_what_is_printed() -> None:
    found = errata.list_errata(Setting())
    for row, printed in zip(found.rows, found.paper_rows, strict=True):
        assert printed.items() <= row.items()
        assert not {"right", "right_value", "truth"} & printed.keys()


def test_neither_scale_nor_seed_changes_a_number() -> None:
    assert errata.list_errata(Setting(scale="full", seed=7)).rows == list(ROWS.values())


def test_progress_is_told_from_none_to_all() -> None:
    told: list[tuple[str, int, int]] = []
    errata.list_errata(Setting(progress=lambda *step: told.append(step)))
    assert told == [("errata", done, 11) for done in range(12)]


def test_notes_are_read_off_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = errata.list_errata(Setting()).notes
    assert notes[0].startswith("As printed, 11 of 11 statements fail")
    assert notes[1] == "As corrected, 11 of 11 hold there: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11."
    reversed_ = replace(SAID, printed_value=2.0, right_value=1.0)
    monkeypatch.setattr(errata, "ERRATA", (lambda: SAID, lambda: reversed_))
    notes = errata.list_errata(Setting()).notes
    assert notes[0] == "As printed, 1 of 2 statements fail in their examples: 1."
    assert notes[1] == "As corrected, 1 of 2 hold there: 1."
    monkeypatch.setattr(errata, "ERRATA", (lambda: reversed_,))
    assert errata.list_errata(Setting()).notes[0].endswith("fail in their examples: none.")


@pytest.mark.parametrize(
    ("truth", "equal", "at_most"),
    [
        (2.0, True, True),
        (2.2, True, True),
        (2.3, False, False),
        (1.8, True, True),
        (1.7, False, True),
    ],
)
def test_a_statement_gives_the_truth_or_bounds_it(truth: float, equal: bool, at_most: bool) -> None:
    said = replace(SAID, truth=truth, tolerance=0.25)
    assert said.right_holds is equal
    assert replace(said, relation="at most").right_holds is at_most
    assert replace(said, printed_value=2.0, right_value=-9.0).holds is equal


def test_what_is_not_finite_is_null() -> None:
    row = replace(SAID, right_value=math.inf, truth=math.inf).to_row(3)
    assert (row["erratum"], row["printed_value"], row["right_value"], row["truth"]) == (
        3,
        1,
        None,
        None,
    )


# --- numbers 1, 3, 4, 5, 7, 11: densities ------------------------------------------------------


def test_the_trace_that_is_missing_is_the_difference() -> None:
    (mean1, cov1), (mean0, cov0) = densities.WITH, densities.WITHOUT
    missing = (np.trace(np.linalg.inv(cov0) @ cov1) - 3) / 2
    printed = densities.printed_divergence(mean1, cov1, mean0, cov0)
    assert printed == ROWS[1]["printed_value"]
    assert printed + missing == pytest.approx(0.365354302527561, rel=1e-12)
    assert ROWS[1]["truth"] == pytest.approx(0.365354302527561, rel=1e-12)
    assert "negative, -0.6931" in ROWS[1]["example"]


def test_integrated_divergence_of_one_dimension() -> None:
    one, other = (np.array([0.3]), np.array([[4.0]])), (np.array([-0.5]), np.array([[0.7]]))
    expected = (4 / 0.7 - 1 + 0.8**2 / 0.7 + math.log(0.7 / 4)) / 2
    assert densities.integrated_divergence(*one, *other) == pytest.approx(expected, rel=1e-12)
    assert float(gaussian_kl(*one, *other)) == pytest.approx(expected, rel=1e-12)


def test_the_best_adversary_s_success_is_that_of_the_threshold_halfway() -> None:
    assert ROWS[3]["truth"] == pytest.approx(float(ndtr(0.5)), abs=1e-10)
    assert (ROWS[3]["printed_value"], ROWS[3]["right_value"]) == (0.5, 0.75)


@pytest.mark.parametrize("distance", [0.001, 1.0, 3.0])
@pytest.mark.parametrize("deviation", [0.0, 0.0061, 0.1, 0.5])
def test_convolved_densities_have_the_leakage_of_wider_gaussians(
    distance: float, deviation: float
) -> None:
    expected = distance**2 / (1 + deviation**2)
    assert densities.noisy_leakage(distance, deviation) == pytest.approx(expected, rel=1e-9)


def test_the_fall_with_the_deviation_of_noise_is_quadratic() -> None:
    falls = [1 - densities.noisy_leakage(1.0, t) for t in (0.01, 0.02, 0.04)]
    assert falls[1] / falls[0] == pytest.approx(4, abs=2e-3)
    assert falls[2] / falls[1] == pytest.approx(4, abs=8e-3)
    assert ROWS[4]["truth"] == pytest.approx(1 / 1.01, rel=1e-12)


def test_the_noise_of_privacy_is_classical_and_proven_there() -> None:
    assert ROWS[5]["printed_value"] == pytest.approx(2)
    low, high = (classical_sigma(epsilon, 1e-5, 0.001) ** 2 for epsilon in (0.8, 0.4))
    assert ROWS[5]["truth"] == pytest.approx(4 * (1 + low) / (1 + high), rel=1e-6)


def test_entropy_and_information_are_those_of_the_mixture() -> None:
    information = 0.111421482184736  # of N(1, 1) and N(0, 1) at equal priors, in any units
    assert ROWS[7]["truth"] == pytest.approx(information, abs=1e-12)
    given = math.log(2 * math.pi * math.e * 0.01**2) / 2
    assert ROWS[7]["printed_value"] == pytest.approx(given + information, abs=1e-12)


def test_order_infinity_is_min_entropy() -> None:
    assert ROWS[11]["truth"] == pytest.approx(math.log(2), abs=1e-9)
    assert ROWS[11]["printed_value"] == math.log(4)
    closed = math.log(4) / 2 + 0.5**2 / (1 - 0.25) / 2
    assert ROWS[11]["example"].count(f"{closed:.4f}") == 2


# --- numbers 2, 6, 8, 9, 10: universes ---------------------------------------------------------


def test_training_sets_are_all_there_are() -> None:
    sets = universes.training_sets(6, 3)
    assert sets.shape == (20, 6)
    assert (sets.sum(axis=1) == 3).all()
    assert len({tuple(row) for row in sets}) == 20
    assert np.allclose(
        universes.means(universes.POWERS, sets, l2=3.0),
        [universes.POWERS[row].mean() / 4 for row in sets],
    )


def test_counting_agrees_with_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        released = rng.integers(0, 4, size=30).astype(float)
        chosen = rng.random(30) < 0.4
        both = Counter(zip(released, chosen, strict=True))
        of_model, of_side = Counter(released), Counter(chosen)
        total = sum(
            count / 30 * math.log(count * 30 / (of_model[model] * of_side[side]))
            for (model, side), count in both.items()
        )
        assert universes.counted_information(released, chosen) == pytest.approx(total, abs=1e-12)
        prior = float(chosen.mean())
        mixed = universes.mixed_information(released, chosen, prior)
        assert mixed == pytest.approx(total, abs=1e-12)
        variation = sum(
            abs(both[model, True] / of_side[True] - both[model, False] / of_side[False]) / 2
            for model in of_model
        )
        assert universes.counted_variation(released, chosen) == pytest.approx(variation)


def test_counted_leakage_of_two_coins_and_of_models_that_tell_for_certain() -> None:
    chosen = np.arange(8) < 4
    released = np.array([0, 1, 1, 1, 0, 0, 1, 1.0])
    expected = (0.75 - 0.5) * math.log(0.75 * 0.5 / (0.5 * 0.25))
    assert universes.counted_leakage(released, chosen) == pytest.approx(expected)
    assert universes.counted_leakage(np.arange(8.0), chosen) == math.inf


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("l2", [0.0, 1.0, 1000.0])
def test_moments_by_the_theory_of_sampling_are_those_of_all_sets(n: int, l2: float) -> None:
    sets = universes.training_sets(6, n)
    models = universes.means(universes.POWERS, sets, l2)
    for record in range(6):
        theory = universes.sampling_moments(universes.POWERS, n, record, l2)
        assert theory == pytest.approx(universes.moments(models, sets[:, record]), rel=1e-10)


@pytest.mark.parametrize("l2", [0.0, 0.3, 1.0, 1e6])
def test_the_ridge_mean_leaks_the_same_for_every_penalty(l2: float) -> None:
    sets = universes.training_sets(6, 3)
    models = universes.means(universes.POWERS, sets, l2)
    rho = universes.averaged(universes.fitted_leakage, models, sets)
    assert rho == pytest.approx(2.79546013747111, rel=1e-12)


def test_a_rounded_ridge_mean_leaks_nothing_in_the_end_unless_its_limit_is_on_an_edge() -> None:
    sets = universes.training_sets(6, 3)

    def told(l2: float, centre: float) -> float:
        released = universes.rounded(universes.means(universes.POWERS - centre, sets, l2), 1.0)
        return universes.averaged(universes.counted_information, released, sets)

    assert told(0.0, 0.0) > told(1.0, 0.0) > told(10.0, 0.0) > told(100.0, 0.0) == 0
    assert "is 0.5545, 0.4113, 0.1218, 0.0000, 0.0000" in ROWS[8]["example"]
    assert told(1.7, 0.0) > told(1.6, 0.0) + 0.08  # no monotone fall before the limit
    # In cells that meet at 0, one sign is told apart from the other however small the model is.
    signs = [np.sign(universes.means(universes.POWERS - 10.5, sets, l2)) for l2 in (0.0, 1e9)]
    kept = [universes.averaged(universes.counted_information, one, sets) for one in signs]
    assert kept[0] == kept[1] == pytest.approx(0.1323, abs=1e-4)


def test_the_prior_that_is_printed_is_that_of_leaving_a_record_out() -> None:
    assert "is in 0.3333 of the training sets" in ROWS[2]["example"]
    assert ROWS[2]["printed_value"] - ROWS[2]["truth"] > 0.01


def test_no_different_sets_are_neighbours_as_printed() -> None:
    assert "0 pairs of different sets are neighbours as printed, 180 where" in ROWS[6]["example"]
    assert ROWS[6]["printed_value"] == 0
    assert ROWS[6]["truth"] == pytest.approx(31 / 3)


@pytest.mark.parametrize(("records", "ones"), [(10, 4), (10, 5), (12, 4), (12, 6)])
def test_rounded_means_of_zeros_and_ones_are_hypergeometric(records: int, ones: int) -> None:
    values = (np.arange(records) < ones).astype(float)
    for n in (3, 4, 5):
        counted = universes.whole_mean_leakage(values, n)
        assert universes.drawn_leakage(records, ones, n) == pytest.approx(counted, rel=1e-12)


def test_the_leakage_rises_with_the_training_set() -> None:
    assert "ρ_KL is 0.1412 for n = 4 and 0.1982 for n = 5" in ROWS[9]["example"]
    for n, entropy in ((1, 0.4506), (2, 0.6365), (3, 0.6931)):
        sets = universes.training_sets(6, n)
        models = universes.means(universes.POWERS, sets)
        rho = universes.averaged(universes.counted_information, models, sets)
        assert rho == pytest.approx(entropy, abs=1e-4)
    assert "0.4506, 0.6365, 0.6931 for n = 1, 2, 3 of 6" in ROWS[9]["example"]


def test_with_noise_the_exact_leakage_is_finite_and_grows_as_the_noise_shrinks() -> None:
    chosen = np.array([True, False])
    two = universes.noisy_leakage(np.array([0.0, 1.5]), chosen, 0.5)
    assert two == pytest.approx((1.5 / 0.5) ** 2, rel=1e-9)
    sets = universes.training_sets(6, 3)
    models = universes.means(universes.POWERS, sets)
    rho = [universes.noisy_leakage(models, sets[:, 0], noise) for noise in (0.2, 0.1, 0.05)]
    assert rho[0] < rho[1] < rho[2]
    assert "of which 0 occur both" in ROWS[10]["example"]
    assert "2.7955" in ROWS[10]["example"]
    assert "0.05 the exact ρ_KL is 3094.2" in ROWS[10]["example"]


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 0.8])
def test_what_private_noise_leaves_is_bounded(epsilon: float) -> None:
    sets = universes.training_sets(6, 3)
    models = universes.means(universes.POWERS, sets)
    sigma = classical_sigma(epsilon, 1e-5, 31 / 3)
    bound = epsilon**2 / (2 * math.log(1.25 / 1e-5))
    left = [universes.noisy_leakage(models, chosen, sigma) for chosen in sets.T]
    assert 0.5 * bound < max(left) <= bound
