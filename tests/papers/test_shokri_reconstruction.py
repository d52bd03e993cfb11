from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leakscope.extractions import Reconstruction
from leakscope.papers import shokri_reconstruction
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_reconstruction import (
    Attacked,
    _notes,
    bound_of,
    reconstructed,
    stand_in,
)
from leakscope.papers.shokri_samples import Population, samples

KEYS = ["dataset", "features", "records", "bound", "k", "recovered"]


def population(name: str = "adult", n: int = 120, d: int = 4, records: int = 60) -> Population:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return Population(name, X, (X[:, 0] + rng.normal(size=n) > 0).astype(np.int64), records)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ["Diabetic Hospital is left out: no.", "Dog vs. Fish is left out: no."]
    found = [population()]
    monkeypatch.setattr(shokri_reconstruction, "populations", lambda setting: (found, missing))
    sizes = {"quick": (12, 15), "full": (14, 17)}
    monkeypatch.setattr(shokri_reconstruction, "STAND_IN", sizes)


@pytest.mark.parametrize(("constant", "rank"), [(False, 4), (True, 3)])
def test_the_bound_is_the_rank_of_centred_features_and_one(constant: bool, rank: int) -> None:
    own = population()
    if constant:
        own.X[:, 2] = 7.0
    sample = next(samples(own, Setting()))
    assert bound_of(sample, 1) == rank + 1
    assert bound_of(sample, 5) == 5 * (rank + 1)
    assert bound_of(sample, 50) == 60


def test_a_pass_reaches_the_bound_at_one_record_per_answer() -> None:
    sample = next(samples(population(), Setting()))
    attacked = Attacked.of(sample, 1)
    assert attacked.disclosure.recovered == attacked.bound == 5
    again = Reconstruction(seed=sample.seed).run(sample.oracle(1))
    assert again.queries == attacked.disclosure.queries
    assert attacked.seconds > 0


def test_the_stand_in_has_two_classes_and_no_negative_features() -> None:
    made = stand_in(12, 15, seed=1)
    assert made.X.shape == (12, 15)
    assert made.records == len(made) == 12
    assert made.X.min() == 0.0
    assert sorted(made.y) == [0] * 6 + [1] * 6
    assert not np.array_equal(made.X, stand_in(12, 15, seed=2).X)


def test_table_3_has_the_means_of_the_passes() -> None:
    experiment = reconstructed(Setting(seeds=2))
    assert [(row["dataset"], row["k"]) for row in experiment.rows] == [
        ("adult", 1), ("adult", 5), ("stand-in", 1),
    ]  # fmt: skip
    first, last = experiment.rows[0], experiment.rows[-1]
    passes = [Attacked.of(sample, 1) for sample in samples(population(), Setting(seeds=2))]
    assert list(first)[: len(KEYS)] == KEYS
    assert first["recovered"] == np.mean([one.disclosure.recovered for one in passes])
    assert first["queries"] == np.mean([one.disclosure.queries for one in passes])
    assert (first["bound"], first["samples"], first["at_bound"]) == (5, 2, 2)
    assert (last["features"], last["records"], last["samples"]) == (15, 12, 1)
    # Where there are more features than records, nearly all are found.
    assert last["recovered"] >= 11
    assert experiment.notes[-1] == "Diabetic Hospital is left out: no."
    assert any("replaced by 12 made-up records of 15 features" in note for note in experiment.notes)


@pytest.mark.parametrize(("scale", "last"), [("quick", "stand-in"), ("full", "dogfish")])
def test_photographs_take_the_place_of_the_stand_in_at_full_scale(
    scale: str, last: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dogs = population("dogfish", n=14, d=17, records=12)
    found = [population(), dogs]
    monkeypatch.setattr(shokri_reconstruction, "populations", lambda setting: (found, []))
    assert scale in ("quick", "full")
    setting = Setting("full" if scale == "full" else "quick", seeds=1)
    experiment = reconstructed(setting)
    assert experiment.rows[-1]["dataset"] == last
    assert any("made-up" in note for note in experiment.notes) is (scale == "quick")
    assert [row["recovered"] for row in experiment.paper_rows] == [1790, 91.5, 81.1]


@pytest.mark.parametrize(("more", "verdict"), [(95.0, "holds"), (180.0, "does not hold")])
def test_what_a_larger_k_brings_is_judged(more: float, verdict: str) -> None:
    shared = {"dataset": "adult", "records": 2000, "bound": 91.0, "samples": 3, "at_bound": 3}
    ends = {"recovered_low": 90.0, "recovered_high": 92.0}
    rows = [
        {**shared, **ends, "k": 1, "recovered": 91.0},
        {**shared, **ends, "k": 5, "recovered": more},
    ]
    first, _, last = _notes(rows)
    assert first == (
        "Adult, k = 1, recovered of 2,000 records: 91 (90 to 92) against 91.5 in print; one pass "
        "can find 91 at most, and did on 3 of 3 samples."
    )
    assert last.endswith(f"negligible benefits {verdict}.")
