from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from leakscope.attacks.network import (
    GradientLabelNetwork,
    GradientNetwork,
    GradientPredictionNetwork,
    NetworkAttack,
    PredictionNetwork,
    one_hot,
    unit_sized,
)
from leakscope.errors import InputError
from leakscope.evidence import Evidence, Folds
from leakscope.metrics.curves import auc_delong
from leakscope.networks import inference

D, K = 5, 3


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """Sub-networks of few units: what is tested here does not depend on how many there are."""
    for name in inference.PARTS:
        monkeypatch.setitem(inference.PARTS, name, (32, 16))


def evidence(attack: NetworkAttack, seed=0, n=600, size=1.0, sure=0.0, swap=False):
    """Members have explanations of another size, and predictions that are surer of their class."""
    rng = np.random.default_rng(seed)
    membership = np.arange(n) % 2 == 0
    explanation = rng.normal(size=(n, D)) * np.where(membership, size, 1.0)[:, None]
    label = rng.integers(0, K, n)
    logits = rng.normal(size=(n, K)) + 2 * one_hot(label, K)
    logits += np.where(membership, sure, 0.0)[:, None] * one_hot(label, K)
    odds = np.exp(logits)
    seen = {
        "gradient": explanation,
        "label": label[:, None],
        "probabilities": odds / odds.sum(axis=1, keepdims=True),
    }
    given = Evidence(
        task="classification",
        observations=np.hstack([seen[part] for part in attack.channel.split("+")]),
        labels=rng.integers(0, K, n),
        classes=K,
        folds=Folds.draw(np.arange(n), membership, seed),
        seed=seed,
        knowledge="members of the other half",
        _membership=membership ^ swap,
    )
    return given, membership, seen


@pytest.mark.parametrize(
    ("attack", "parts"),
    [
        (GradientNetwork(), {"predicted", "explanation"}),
        (GradientLabelNetwork(), {"predicted", "explanation", "truth"}),
        (PredictionNetwork(), {"predicted", "probabilities"}),
        (GradientPredictionNetwork(), {"predicted", "explanation", "probabilities"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_sub_network_reads_its_own_part(attack, parts):
    given, _, seen = evidence(attack)
    read = attack.parts(given)
    assert set(read) == parts
    np.testing.assert_array_equal(read["predicted"].argmax(axis=1), seen["label"][:, 0])
    if "explanation" in parts:
        np.testing.assert_array_equal(read["explanation"], seen["gradient"])
    if "probabilities" in parts:
        np.testing.assert_array_equal(read["probabilities"], seen["probabilities"])
    if "truth" in parts:
        np.testing.assert_array_equal(read["truth"].argmax(axis=1), given.labels)


def test_members_are_expected_to_have_small_gradients_and_sure_predictions():
    attacks = (GradientNetwork(), PredictionNetwork(), GradientPredictionNetwork())
    small, sure, both = (attack.expected(evidence(attack)[0]) for attack in attacks)
    _, _, seen = evidence(GradientNetwork())
    np.testing.assert_array_equal(small, rankdata(-np.abs(seen["gradient"]).sum(axis=1)))
    np.testing.assert_array_equal(sure, rankdata(seen["probabilities"].max(axis=1)))
    np.testing.assert_array_equal(both, small + sure)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_size_of_a_gradient_is_learned_and_lost_if_it_is_normalized(seed):
    attack = GradientNetwork(lr=0.01)
    given, membership, _ = evidence(attack, seed, size=0.4)
    # The sums of 5 squares that differ by .4²: the best AUC is .96 by simulation.
    assert auc_delong(attack.score(given), membership).value > 0.85
    control = replace(attack, normalized=True)
    found = auc_delong(control.score(given), membership, inflation=2.0, confidence=1 - 1e-7)
    assert found.low <= 0.5 <= found.high


def test_sure_predictions_are_learned():
    attack = PredictionNetwork(lr=0.01)
    given, membership, _ = evidence(attack, sure=3.0)
    assert auc_delong(attack.score(given), membership).value > 0.8


def test_the_units_of_an_explanation_do_not_matter():
    attack = GradientNetwork(lr=0.01, epochs=3)
    given, *_ = evidence(attack, size=0.4)
    smaller = given.observations.copy()
    smaller[:, :D] /= 1024
    np.testing.assert_allclose(
        attack.score(given), attack.score(replace(given, observations=smaller)), atol=1e-9
    )


def test_swapped_sides_give_the_same_scores():
    attack = GradientPredictionNetwork(lr=0.01)
    plain, *_ = evidence(attack, size=0.5, sure=2.0)
    swapped, *_ = evidence(attack, size=0.5, sure=2.0, swap=True)
    np.testing.assert_array_equal(attack.score(plain), attack.score(swapped))


def test_the_same_seed_gives_the_same_scores_and_leaves_torch_alone():
    attack = GradientNetwork(epochs=1)
    given, *_ = evidence(attack, n=100)
    torch.manual_seed(5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    first = attack.score(given)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    np.testing.assert_array_equal(first, attack.score(given))
    assert not np.array_equal(first, attack.score(replace(given, seed=1)))


def test_explanations_of_nothing_are_scored():
    attack = GradientNetwork(epochs=1, normalized=True)
    given, *_ = evidence(attack, n=100)
    nothing = given.observations.copy()
    nothing[:, :D] = 0.0
    assert np.isfinite(attack.score(replace(given, observations=nothing))).all()


def test_it_is_trained_as_the_paper_says(monkeypatch):
    settings = []
    from leakscope.networks import training

    def noted(module, X, y, asked, *, order):
        settings.append((asked, {name: tuple(part.shape) for name, part in X.items()}))

    monkeypatch.setattr(training, "train", noted)
    given, *_ = evidence(GradientNetwork(), n=80)
    GradientNetwork().score(given)
    (asked, shapes), _ = settings
    assert (asked.epochs, asked.batch_size) == (15, 32)
    assert (asked.updates.name, asked.updates.lr, asked.updates.decay) == ("adagrad", 1e-3, 1e-6)
    assert shapes == {"predicted": (40, K), "explanation": (40, D)}


def test_many_records_are_asked_about_in_parts(monkeypatch):
    attack = GradientNetwork(epochs=1)
    given, *_ = evidence(attack, n=100)
    whole = attack.score(given)
    monkeypatch.setattr("leakscope.attacks.network.ASKED", 7)
    np.testing.assert_allclose(attack.score(given), whole, atol=1e-6)


@pytest.mark.parametrize("option", [{"epochs": 0}, {"lr": 0.0}, {"batch_size": 0}])
def test_options_that_cannot_be_are_refused(option):
    attack = GradientNetwork(**option)
    given, *_ = evidence(attack, n=100)
    with pytest.raises(InputError, match=f"The option {next(iter(option))} must be"):
        attack.score(given)


def test_classes_and_sizes_by_hand():
    np.testing.assert_array_equal(one_hot([1.0, 0.0], 2), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(
        unit_sized(np.array([[1.0, -3.0], [0.0, 0.0]])), [[0.25, -0.75], [0, 0]]
    )
