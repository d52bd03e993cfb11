from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from leakscope.auditing.battery import choose_attacks, run_battery
from leakscope.comparing.defending import around, as_combination
from leakscope.comparing.dividing import Seat, divide
from leakscope.comparing.judging import Trained, headline, judge_model
from leakscope.errors import ModelError
from leakscope.leakage.gain import output_gain
from leakscope.metrics.outcome import judge
from leakscope.models import as_model
from leakscope.probabilities import logit_margin
from leakscope.protocols import silent
from leakscope.recipes import as_recipe

ATTACKS = choose_attacks(["loss", "label-gap", "entropy"], None)[0]


@pytest.fixture(scope="module")
def seat(pool):
    pool = pool.take(pool.canonical_order())
    return Seat.of(pool, divide(pool, None, 0, 1)[0], 0, 0)


def judged(estimator, seat, defense="none", attacks=ATTACKS):
    fitted = as_model(estimator.fit(seat.members.X, seat.members.y))
    return judge_model(
        around(as_combination(defense), as_recipe(estimator), len(seat.members)),
        Trained(fitted, 1.5, -1),
        seat,
        attacks,
        None,
        blocks=240,
        seed=0,
        progress=silent,
    ), fitted


def test_a_row_is_what_one_finds_by_hand(seat):
    found, model = judged(LogisticRegression(C=1e4), seat)
    X, y, members = seat.records.X, seat.records.y, seat.membership
    probabilities = model.predict_proba(X)
    loss = -np.log(probabilities[np.arange(len(y)), y])
    right = probabilities.argmax(axis=1) == y
    # Yeom's adversary says member up to the average training loss, and is judged on everybody.
    by_loss = loss <= loss[members].mean()
    accuracy = {
        "loss": (1 + by_loss[members].mean() - by_loss[~members].mean()) / 2,
        "label-gap": (1 + right[members].mean() - right[~members].mean()) / 2,
    }
    assert found.row["attack_accuracy"] >= max(accuracy.values()) - 1e-12
    only, _ = judged(LogisticRegression(C=1e4), seat, attacks=ATTACKS[:2])
    best = max(accuracy, key=lambda name: accuracy[name])
    assert only.row["attack"] == best
    assert only.row["attack_accuracy"] == pytest.approx(accuracy[best])
    assert only.row["advantage"] == pytest.approx(2 * accuracy[best] - 1)
    assert only.found.value == pytest.approx(accuracy[best])
    assert only.row["train_accuracy"] == pytest.approx(right[members].mean())
    assert only.row["test_accuracy"] == only.right.value == pytest.approx(right[~members].mean())
    assert only.row["low"] < accuracy[best] < only.row["high"]
    assert only.row["train_seconds"] == 1.5
    assert only.row["epochs"] is None
    assert only.row["epsilon"] is None
    assert only.row["guarantee"] == "no formal guarantee"
    gain = output_gain(logit_margin(probabilities, y)[:, None], members, seed=0)
    assert only.row["leakage"] == {"channel": "margin", **gain.to_dict()}


def test_a_chosen_threshold_is_judged_on_the_other_records(seat):
    found, model = judged(DecisionTreeClassifier(max_depth=4), seat, attacks=ATTACKS[2:])
    (shot,) = run_battery(
        model, seat.records, seat.membership, seat.folds, ATTACKS[2:], 0, silent
    ).shots.values()
    assert found.row["attack"] == "entropy"
    assert found.found.value == pytest.approx(found.row["attack_accuracy"])
    assert len(np.unique(seat.place[~seat.folds.calibration])) >= np.count_nonzero(
        found.found.influence
    )
    assert shot.threshold is None


def test_what_is_judged_is_what_is_released(seat):
    tree = DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
    entropy = ATTACKS[2:]
    plain, _ = judged(tree, seat, attacks=entropy)
    rounded, _ = judged(tree, seat, "round:0", attacks=entropy)
    assert plain.row["auc"] != 0.5
    # Probabilities of 0 and 1 alone have no entropy to tell anybody by.
    assert rounded.row["auc"] == rounded.row["attack_accuracy"] == 0.5
    assert rounded.row["test_accuracy"] == plain.row["test_accuracy"]


def outcome(name, shift, n=400):
    rng = np.random.default_rng(0)
    membership = np.arange(n) < n // 2
    scores = rng.normal(size=n) + shift * membership
    words = dict.fromkeys(("channel", "paper", "summary", "knowledge"), "")
    return judge(scores, membership, attack=name, threshold=0.0, **words)


def test_the_headline_allows_for_the_choice_of_the_attack():
    weak, strong = outcome("weak", 0.1), outcome("strong", 1.0)
    chosen, interval = headline([weak, strong], "none", {})
    assert chosen is strong
    assert interval.value == strong.accuracy.value
    assert interval.low == strong.rates.accuracy(0.975).low < strong.accuracy.low
    assert interval.high == strong.accuracy.high
    alone = headline([strong], "none", {})[1]
    assert (alone.low, alone.high) == pytest.approx((strong.accuracy.low, strong.accuracy.high))
    same = [outcome(name, 0.5) for name in ("b", "a")]
    assert headline(same, "none", {})[0].attack == "a"


def test_a_model_that_no_attack_can_be_run_on_is_refused():
    with pytest.raises(ModelError, match=r"on the models of 'x': It lacks that."):
        headline([], "x", {"loss": "It lacks that."})


def test_every_attack_is_told_and_any_may_be_looked_at_for_its_strength(seat):
    found, _ = judged(LogisticRegression(C=1e4), seat)
    told, row = found.row["by_attack"], found.row
    assert set(told) == {"loss", "label-gap", "entropy"}
    strongest = max(told, key=lambda name: told[name]["value"])
    assert strongest == row["attack"]
    assert told[strongest]["value"] == row["attack_accuracy"]
    assert row["low"] == max(one["low"] for one in told.values())
    assert row["high"] == max(one["high"] for one in told.values())
    for name, figure in found.by_attack.items():
        assert figure.value == pytest.approx(told[name]["value"])
    assert found.by_attack[strongest] is found.found
    # One attack alone has nothing to allow for.
    (only,) = (
        judged(LogisticRegression(C=1e4), seat, attacks=ATTACKS[:1])[0].row["by_attack"].values()
    )
    assert told["loss"]["low"] < only["low"]
    assert (told["loss"]["value"], told["loss"]["high"]) == (only["value"], only["high"])


def test_too_few_records_for_a_divergence_leave_it_out(pool):
    pool = pool.take(pool.canonical_order())
    few = Seat.of(pool, divide(pool, 30, 0, 1)[0], 0, 0)
    assert judged(LogisticRegression(), few, attacks=ATTACKS[:1])[0].row["leakage"] is None
