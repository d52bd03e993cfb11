from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from leakscope.auditing.battery import choose_attacks, run_battery
from leakscope.errors import InputError
from leakscope.evidence import Folds
from leakscope.models import as_model
from leakscope.protocols import CLASSIFICATION, Attack, silent
from leakscope.registry import entries
from leakscope.trials import Trials, independent_halves

ON_REQUEST = {
    name: f"It runs on request, by its name or by --channels {channels}."
    for name, channels in {
        "gradient-norm": "explanations",
        "lime-forest": "lime",
        "lira-queries": "noisy-margin",
        "network-prediction": "explanations",
        "shown": "records",
    }.items()
}


@dataclass(frozen=True)
class Odd(Attack):
    """An attack that gives what it is told to give."""

    name: ClassVar[str] = "odd"
    paper: ClassVar[str] = "none"
    channel: ClassVar[str] = "loss"
    tasks: ClassVar = CLASSIFICATION
    answer: object = None

    def score(self, evidence):
        return self.answer


def run(attack, forest, sides):
    records = sides[0]
    membership = np.arange(len(records)) % 2 == 0
    folds = Folds.draw(records.blocks(), membership, 0)
    return run_battery(as_model(forest), records, membership, folds, [attack], 0, silent)


@pytest.mark.parametrize("answer", [np.full(400, np.nan), np.zeros(3), np.full(400, np.inf)])
def test_scores_that_are_not_one_finite_number_per_record_are_refused(answer, forest, sides):
    battery = run(Odd(answer), forest, sides)
    assert not battery.shots
    assert "The odd attack gave scores of shape" in battery.not_run["odd"]


def test_an_attack_that_declares_nothing_is_given_nothing(forest, sides):
    seen = []

    @dataclass(frozen=True)
    class Curious(Odd):
        """An attack that looks for membership."""

        def score(self, evidence):
            seen.append(evidence)
            return evidence.observations[:, 0]

    run(Curious(), forest, sides)
    assert seen[0]._membership is None
    with pytest.raises(PermissionError):
        seen[0].average_training_loss()


def test_an_error_that_is_not_ours_is_not_swallowed(forest, sides):
    @dataclass(frozen=True)
    class Broken(Odd):
        """An attack with a mistake in it."""

        def score(self, evidence):
            raise ZeroDivisionError("a mistake")

    with pytest.raises(ZeroDivisionError):
        run(Broken(), forest, sides)


def test_all_attacks_are_chosen_by_default():
    chosen, left_out = choose_attacks(None, None)
    usual = [entry.name for entry in entries("attack") if not entry.thing.on_request]
    assert [one.name for one in chosen] == usual
    asking = {entry.name for entry in entries("attack") if entry.thing.on_request}
    assert left_out.keys() == asking
    assert left_out.items() >= ON_REQUEST.items()
    assert {"lira-queries", "shown"} <= set(left_out)


@pytest.mark.parametrize(
    ("attack", "channel"), [("lira-queries", "noisy-margin"), ("shown", "records")]
)
def test_an_attack_on_request_runs_by_its_name_or_by_that_of_its_channel(attack, channel):
    assert [one.name for one in choose_attacks([attack], None)[0]] == [attack]
    assert [one.name for one in choose_attacks(None, [channel])[0]] == [attack]
    chosen, left_out = choose_attacks(None, [channel, "label"])
    assert {attack, "label-gap"} <= {one.name for one in chosen}
    assert attack not in left_out


def test_names_and_instances_mix_and_the_rest_is_named():
    chosen, left_out = choose_attacks(["loss", Odd()], ["loss"])
    assert [one.name for one in chosen] == ["loss", "odd"]
    assert left_out["label-gap"] == "It was not asked for."
    assert left_out.items() >= ON_REQUEST.items()
    assert "loss" not in left_out


def test_nothing_left_to_run_is_refused():
    with pytest.raises(
        InputError, match="None of the attacks loss goes through the channels label;"
    ):
        choose_attacks(["loss"], ["label"])
    with pytest.raises(InputError, match="No attack was asked for"):
        choose_attacks([], None)


def test_a_name_in_place_of_a_list_is_refused():
    with pytest.raises(InputError, match="lists of names"):
        choose_attacks("loss", None)
    with pytest.raises(InputError, match="lists of names"):
        choose_attacks(None, "label")


def test_two_attacks_of_one_name_are_refused():
    with pytest.raises(InputError, match="Two attacks are named 'odd'"):
        choose_attacks([Odd(), Odd(1)], None)


def test_an_attack_whose_channel_was_not_asked_for_is_named():
    _, left_out = choose_attacks(["label-gap", Odd()], ["label"])
    assert left_out["odd"] == "Its channel 'loss' was not asked for."


def test_a_class_in_place_of_an_attack_is_refused():
    with pytest.raises(InputError, match=r"is a class; give Odd\(\)"):
        choose_attacks([Odd], None)


def test_attacks_see_what_is_released_of_each_channel_and_each_part(forest, sides):
    records = sides[0]
    membership = np.arange(len(records)) % 2 == 0
    seen = {}

    @dataclass(frozen=True)
    class Looking(Odd):
        """An attack that notes what it sees."""

        name: ClassVar[str] = "looking"
        channel: ClassVar[str] = "label+loss"

        def score(self, evidence):
            seen[self.name] = evidence.observations
            return evidence.observations[:, 0]

    def doubled(channel):
        class Doubled(type(channel)):
            def observe(self, model, records):
                return 2 * super().observe(model, records)

        return Doubled()

    folds = Folds.draw(records.blocks(), membership, 0)
    model = as_model(forest)
    for release in ({}, {"release": doubled}):
        seen["before"] = seen.get("looking")
        run_battery(model, records, membership, folds, [Looking()], 0, silent, **release)
    np.testing.assert_array_equal(seen["looking"], 2 * seen["before"])


def test_a_channel_that_a_defense_refuses_is_the_reason(forest, sides):
    def refusing(channel):
        raise InputError("It cannot be shown.")

    records = sides[0]
    membership = np.arange(len(records)) % 2 == 0
    folds = Folds.draw(records.blocks(), membership, 0)
    attacks = choose_attacks(["loss"], None)[0]
    battery = run_battery(
        as_model(forest), records, membership, folds, attacks, 0, silent, release=refusing
    )
    assert battery.not_run == {"loss": "It cannot be shown."}


def test_a_complement_among_the_shadow_models_is_warned_of(forest, sides):
    records = sides[0]
    n, others = len(records), independent_halves(len(sides[0]), 12, seed=0)
    membership = independent_halves(n, 1, seed=1)[0] == 1
    folds = Folds.draw(records.blocks(), membership, 0)
    attacks = choose_attacks(["rmia"], None)[0]

    def battery(*more):
        roles = np.concatenate([others, *more]).astype(np.int8)
        margins = np.random.default_rng(0).normal(size=(*roles.shape, 1))
        trials = Trials(roles, {"margin": margins}, seeds=range(len(roles)))
        return run_battery(
            as_model(forest), records, membership, folds, attacks, 0, silent, trials=trials
        )

    assert battery().shots  # without a warning
    with pytest.warns(UserWarning, match="2 of 14 shadow models have the target's own members, or"):
        battery(~membership[None], membership[None])
