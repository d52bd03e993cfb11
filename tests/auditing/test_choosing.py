from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope.attacks.taught import ByShadows
from leakscope.auditing.battery import channel_of, choose_attacks
from leakscope.auditing.choosing import attack_of, explanations_of, parts_of, shown_through
from leakscope.channels.explanations import Gradient
from leakscope.channels.joined import Joined
from leakscope.errors import UnknownNameError
from leakscope.metrics.curves import auc_delong
from leakscope.models import as_model
from leakscope.records import Records, pool
from leakscope.registry import entries


def names(attacks, channels):
    return {one.name for one in choose_attacks(attacks, channels)[0]}


def test_an_attack_through_two_channels_runs_if_both_are_asked_for():
    network = {"network-gradient", "network-gradient-label"}
    assert not names(None, ["gradient"]) & network
    assert names(None, ["gradient", "label"]) >= network | {"label-gap", "gradient-norm"}
    assert names(None, ["gradient+label"]) == names(None, ["gradient", "label"])
    _, left_out = choose_attacks(["network-gradient", "label-gap"], ["label"])
    assert left_out["network-gradient"] == "Its channel 'gradient+label' was not asked for."


def test_who_sees_an_explanation_sees_its_summary():
    assert shown_through(["lrp"]) == {"lrp", "lrp-summary"}
    assert names(None, ["lrp"]) == {"lrp-sum", "lrp-forest"}


def test_the_usual_channels_bring_the_usual_attacks_alone():
    chosen, _ = choose_attacks(None, ["label", "probabilities"])
    assert chosen
    assert not any(one.on_request for one in chosen)
    assert names(["network-prediction"], ["label", "probabilities"]) == {"network-prediction"}


def test_explanations_are_every_one_that_follows_the_model_back_and_what_is_released_anyway():
    seen = shown_through(["explanations"])
    assert {"gradient", "gradient-probability-summary", "smoothgrad", "deeplift"} <= seen
    assert {"label", "loss", "probabilities"} <= seen
    assert not {"lime", "kernel-shap-summary", "occlusion", "records"} & seen
    chosen = names(None, ["explanations"])
    assert {"network-prediction", "variance", "gradient-forest", "loss", "label-gap"} <= chosen
    assert {"confidence", "modified-entropy"} <= chosen  # who sees probabilities can compute both
    assert not {"lime-forest", "shown", "lira-queries", "robustness"} & chosen
    assert names(None, ["explanations", "lime"]) == chosen | {"lime-forest"}


def test_every_attack_can_be_asked_for_by_what_is_said_of_it():
    for name, reason in choose_attacks(None, None)[1].items():
        asked = reason.partition("by --channels ")[2].removesuffix(".").split(",")
        assert name in names(None, asked)


def test_a_taught_attack_is_taught_by_shadow_models_if_its_name_says_so():
    taught = attack_of("gradient-forest-shadow")
    assert taught == ByShadows(attack_of("gradient-forest"))
    assert names(["gradient-forest-shadow"], None) == {"gradient-forest-shadow"}
    assert attack_of("shadow").name == "shadow"
    for name in ("gradient-norm-shadow", "nothing-shadow"):
        with pytest.raises(UnknownNameError):
            attack_of(name)


def test_an_unknown_channel_is_refused():
    for name in ("nothing", "gradient+nothing"):
        with pytest.raises(UnknownNameError):
            choose_attacks(None, [name])


def test_channels_of_every_attack_can_be_made_with_a_seed():
    for entry in entries("attack"):
        channel = channel_of(entry.thing.channel, 5)
        assert channel.name == entry.thing.channel
        assert isinstance(channel, Joined) == (len(parts_of(entry.thing)) > 1)
    assert channel_of("smoothgrad-summary", 5).explanation.seed == 5


def test_an_audit_through_explanations_of_a_linear_model():
    rng = np.random.default_rng(0)
    members, others = (
        Records(X, (X[:, 0] + noise > 0).astype(int))
        for X, noise in zip(rng.normal(size=(2, 120, 30)), rng.normal(size=(2, 120)), strict=True)
    )
    model = LogisticRegression(C=100.0).fit(members.X, members.y)
    attacks = ["gradient-probability-norm", "gradient-probability-tree-shadow", "loss"]
    report = leakscope.audit(model, members, others, attacks=attacks, shadows=4, workers=1)
    outcomes = {one["attack"]: one for one in report.outcomes}
    assert set(outcomes) == set(attacks)
    assert outcomes["gradient-probability-norm"]["channel"] == "gradient-probability-summary"
    records, membership = pool(members, others)
    sizes = np.abs(Gradient("probability").observe(as_model(model), records)).sum(axis=1)
    by_hand = auc_delong(-sizes, membership).value
    assert outcomes["gradient-probability-norm"]["auc"]["value"] == pytest.approx(by_hand)
    assert outcomes["gradient-probability-tree-shadow"]["models"] == 5


def test_the_explanations_that_an_attack_sees():
    for name, seen in (
        ("gradient-norm", {"gradient"}),
        ("gradient-probability-tree", {"gradient-probability"}),
        ("network-gradient-prediction", {"gradient"}),
        ("lime-forest", {"lime"}),
        ("shown", {"records"}),
        ("network-prediction", set()),
        ("loss", set()),
    ):
        assert explanations_of(attack_of(name)) == seen, name
