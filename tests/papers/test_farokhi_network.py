from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.datasets import load_dataset
from leakscope.leakage import output_leakage
from leakscope.metrics import membership_experiment
from leakscope.papers import farokhi_network
from leakscope.papers.experiment import Setting
from leakscope.papers.farokhi_network import Size, network, network_by_size, unit_variance
from leakscope.papers.saving import as_json
from leakscope.trials import run_trials

MODELS, N = 16, 12


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of one layer, on a few records each."""
    monkeypatch.setitem(farokhi_network.SIZES, "quick", Size(MODELS, 4))
    monkeypatch.setattr(farokhi_network, "LAYERS", (4,))
    monkeypatch.setattr(farokhi_network, "STEPS", 60)
    monkeypatch.setattr(farokhi_network, "SIZES_SWEPT", (N, 20))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_row_holds_what_the_outputs_of_the_models_tell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = []

    def watched(*given: Any, **named: Any) -> Any:
        made.append(run_trials(*given, **named))
        return made[-1]

    monkeypatch.setattr(farokhi_network, "run_trials", watched)
    setting = Setting(workers=1, store=tmp_path)
    experiment = network_by_size(setting)
    trials, row = made[0], experiment.rows[0]
    assert trials.roles.shape == (MODELS, 2 * N)
    assert (trials.membership.sum(axis=1) == N).all()
    assert (trials.membership.sum(axis=0) == MODELS // 2).all()
    found = output_leakage(trials.observations["margin"], trials.membership, permutations=4)
    assert row["rho_kl"] == found.divergence.mean.value
    assert row["rho_kl_null_high"] == found.divergence.null.high
    assert row["rho_mi_balanced"] == found.mutual_information.mean.value
    assert row["null_high"] == found.mutual_information.null.high
    assert row["rho_mi_underestimate"] == found.mutual_information.underestimate
    for one in experiment.rows:
        assert 0 <= one["rho_mi_balanced_low"] <= one["rho_mi_balanced"]
        assert one["rho_mi_balanced"] <= one["rho_mi_balanced_high"] <= np.log(2)
        assert min(one["null_mean"], one["null_high"]) >= 0
        assert 0 <= one["rho_kl_low"] <= one["rho_kl"]
    assert not any("−" in note for note in experiment.notes if "Mutual information is" in note)
    assert row["advantage_learned"] == found.advantage.mean.value
    yeom = membership_experiment(trials.observations["loss"], trials.membership)
    assert row["advantage_signed"] == pytest.approx(yeom.mean.value)
    assert row["advantage_signed_low"] == yeom.mean.low
    assert row["advantage_median"] == pytest.approx(np.median(np.abs(yeom.advantages)))
    assert row["rho_mi"] is row["total_variation"] is None
    assert {path.name for path in (tmp_path / "farokhi-fig2").iterdir()} == {"12", "20"}
    assert as_json(network_by_size(setting)) == as_json(experiment)
    assert len(experiment.draw().axes) == 2  # type: ignore[misc]


@pytest.mark.usefixtures("tiny")
def test_repetitions_multiply_models_and_keep_them_even(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(farokhi_network.SIZES, "quick", Size(17, 2))
    monkeypatch.setattr(farokhi_network, "STEPS", 2)
    monkeypatch.setattr(farokhi_network, "output_leakage", _stop)
    monkeypatch.setattr(farokhi_network, "SIZES_SWEPT", (N,))
    told: list[tuple[str, int, int]] = []
    setting = Setting(workers=1, seeds=3, progress=lambda *step: told.append(step))
    with pytest.raises(ZeroDivisionError, match="stop"):
        network_by_size(setting)
    assert told[-1] == ("n = 12: measuring the outputs of 52 models", 0, 0)


def _stop(*given: Any, **named: Any) -> Any:
    raise ZeroDivisionError("stop")


@pytest.mark.parametrize(
    ("n", "passes", "batch"), [(30, 600, 30), (300, 300, 200), (1000, 120, 200)]
)
def test_every_size_is_trained_for_the_same_number_of_steps(
    n: int, passes: int, batch: int
) -> None:
    estimator = network(n).estimator  # type: ignore[attr-defined]
    assert (estimator.max_iter, estimator.n_iter_no_change) == (passes, passes)
    assert estimator.batch_size == batch
    assert estimator.hidden_layer_sizes == (50,) * 5
    assert (estimator.activation, estimator.alpha) == ("tanh", 0.0)


def test_components_get_variance_one() -> None:
    records = unit_variance(load_dataset("adult", encoding="pca"))
    assert np.asarray(records.X).var(axis=0) == pytest.approx(np.ones(5))
