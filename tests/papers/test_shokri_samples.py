from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from leakscope.errors import InputError
from leakscope.exact import leave_one_out
from leakscope.metrics.intervals import wilson
from leakscope.papers import shokri_samples
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_samples import (
    Population,
    against,
    columns,
    mean_over,
    number,
    pooled_share,
    populations,
    repetitions,
    samples,
    setup_of,
    with_others,
)


@pytest.fixture
def small() -> Population:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return Population("adult", X, (X[:, 0] > 0).astype(np.int64), 40)


def test_samples_are_drawn_apart_and_by_the_seed(small: Population) -> None:
    drawn = list(samples(small, Setting(seeds=4)))
    assert len(drawn) == 4
    for one in drawn:
        assert len(one.rows) == 40
        assert sorted([*one.rows, *one.others]) == list(range(60))
        np.testing.assert_array_equal(one.features, small.X[one.rows])
        np.testing.assert_array_equal(one.labels, small.y[one.rows])
    assert len({tuple(one.rows) for one in drawn}) == 4
    again = list(samples(small, Setting(seeds=2)))
    np.testing.assert_array_equal(again[1].rows, drawn[1].rows)
    other = next(samples(small, Setting(seed=1, seeds=1)))
    assert not np.array_equal(other.rows, drawn[0].rows)


def test_models_are_those_of_a_penalty_of_one(small: Population) -> None:
    sample = next(samples(small, Setting(seeds=1), 20))
    expected = leave_one_out(sample.features, sample.labels, l2=1.0)
    assert len(sample.models) == 20
    np.testing.assert_allclose(sample.models.theta_without, expected.theta_without, rtol=1e-12)


def test_a_population_too_small_is_refused(small: Population) -> None:
    with pytest.raises(InputError, match="61 records cannot be drawn of 60 in adult"):
        next(samples(small, Setting(), 61))


def test_everybody_makes_one_sample(small: Population) -> None:
    (sample,) = samples(small, Setting(), 60)
    assert sorted(sample.rows) == list(range(60))
    assert len(sample.others) == 0


def test_samples_by_scale_and_by_hand() -> None:
    assert repetitions(Setting()) == 3
    assert repetitions(Setting("full")) == 10
    assert repetitions(Setting("full", seeds=2)) == 2


def test_adult_is_as_in_the_paper_and_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    found, missing = populations(Setting(data=tmp_path))
    (adult,) = found
    assert adult.X.shape == (48842, 104)
    assert adult.records == 2000
    # Section 5.1.2: 2,510 entries are younger than 20.
    assert (adult.groups["age"] == "10-20").sum() == 2510
    assert set(adult.groups) == {"age", "race", "sex"}
    assert [note.partition(" is left out")[0] for note in missing] == [
        "Diabetic Hospital", "Dog vs. Fish",
    ]  # fmt: skip
    assert setup_of(Setting(), found, k=5)["datasets"] == {
        "adult": {"population": 48842, "records": 2000, "features": 104}
    }


def test_files_of_the_data_folder_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "dogfish.npz", features=rng.normal(size=(30, 7)), labels=np.arange(30) % 2)
    monkeypatch.setattr(shokri_samples, "IMAGES", 20)
    dogfish = shokri_samples._dogfish(Setting(data=tmp_path))
    assert (dogfish.name, dogfish.X.shape, dogfish.records) == ("dogfish", (30, 7), 20)
    monkeypatch.setattr(shokri_samples, "IMAGES", 1800)
    assert shokri_samples._dogfish(Setting(data=tmp_path)).records == 30


def test_hospital_ages_are_named_as_in_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    from leakscope.records import Records

    def loaded(name: str, **options: object) -> Records:
        assert (name, options["encoding"], options["seed"]) == ("hospital", "onehot", 3)
        groups = {
            "race": np.array(["Other", "Asian"]),
            "gender": np.array(["Male", "Female"]),
            "age": np.array(["[0-10)", "[90-100)"]),
        }
        return Records(X=np.eye(2), y=np.array([0, 1]), groups=groups)

    monkeypatch.setattr(shokri_samples, "load_dataset", loaded)
    hospital = shokri_samples._hospital(Setting(seed=3))
    assert hospital.groups["age"].tolist() == ["0-10", "90-100"]
    assert hospital.groups["sex"].tolist() == ["Male", "Female"]


def test_the_mean_has_students_interval() -> None:
    values = [3.0, 5.0, 10.0]
    found = mean_over(values)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (found.value, found.low, found.high) == pytest.approx((6.0, low, high))
    alone = columns("scc", mean_over([7.0]))
    assert alone == {"scc": 7.0, "scc_low": None, "scc_high": None}


def test_a_share_of_equal_samples_has_students_interval_of_their_shares() -> None:
    hits, sizes = [10, 30, 80], [200, 200, 200]
    found = pooled_share(hits, sizes)
    shares = 100 * np.array(hits) / 200
    low, high = stats.t.interval(0.95, 2, shares.mean(), stats.sem(shares))
    assert found.value == pytest.approx(20.0)
    assert (found.low, found.high) == pytest.approx((max(low, 0.0), high))


@pytest.mark.parametrize(("hits", "sizes"), [([0, 0], [5, 7]), ([3], [9]), ([20, 20], [50, 50])])
def test_a_share_is_never_surer_than_its_records_allow(hits: list[int], sizes: list[int]) -> None:
    found, alone = pooled_share(hits, sizes), wilson(sum(hits), sum(sizes))
    assert (found.low, found.high) == pytest.approx((100 * alone.low, 100 * alone.high))


def test_students_interval_of_a_share_covers_it() -> None:
    """Over samples that differ, where Wilson's over all records covers far too rarely."""
    rng = np.random.default_rng(0)
    rates = rng.beta(20, 60, size=(2000, 10))
    hits = rng.binomial(200, rates)
    covered = [
        found.low <= 25.0 <= found.high
        for found in (pooled_share(row.tolist(), [200] * 10) for row in hits)
    ]
    # 0.95 within five standard errors.
    assert abs(np.mean(covered) - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 2000)
    alone = [wilson(int(row.sum()), 2000) for row in hits]
    assert np.mean([one.low <= 0.25 <= one.high for one in alone]) < 0.75


def test_numbers_are_told_beside_those_in_print() -> None:
    row = {"k5": 21.34, "k5_low": 20.0, "k5_high": 22.61}
    assert against(row, "k5", 21, " %") == "21.3 % (20 to 22.6) against 21 % in print"
    alone = {"scc": 1727.2, "scc_low": None, "scc_high": None}
    assert against(alone, "scc", 1742) == "1,727 against 1,742 in print"
    assert number(-3.2) == "−3.2"


def test_those_trained_on_altogether_are_left_out_where_others_are_needed(
    small: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Population("dogfish", small.X, small.y, 60)
    monkeypatch.setattr(shokri_samples, "populations", lambda setting: ([small, whole], ["No."]))
    kept, missing = with_others(Setting())
    assert kept == [small]
    assert missing == ["No.", "Dog vs. Fish is left out: all its 60 records are trained on."]


def test_the_oracle_answers_as_the_model_does(small: Population) -> None:
    sample = next(samples(small, Setting()))
    answers = sample.oracle(3).ask(small.X[:4])
    np.testing.assert_array_equal(answers.shown, sample.models.explain(small.X[:4], 3)[0])
    np.testing.assert_allclose(answers.predictions, sample.models.predict_proba(small.X[:4])[:, 1])
