from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.auditing.battery import channel_of
from leakscope.comparing.defending import Combination, around, as_combination, combinations
from leakscope.defenses import OutputPerturbation, as_defense
from leakscope.defenses.regularization import L2
from leakscope.errors import InputError, UnknownNameError
from leakscope.models import as_model
from leakscope.protocols import Defense
from leakscope.recipes import as_recipe
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.records import Records


@dataclass(frozen=True)
class Promising(Defense):
    """Promises what it is told to, and changes the name alone."""

    name: ClassVar[str] = "promising"
    paper: ClassVar[str] = "none"
    example: ClassVar[str] = "promising:1"

    epsilon: float

    def wrap_recipe(self, recipe):
        return SklearnRecipe(f"{recipe.name}+{self.name}", LogisticRegression())

    def budget(self, recipe, n):
        return self.epsilon, n / 1000


def test_a_plus_stands_between_defenses_and_not_within_a_number():
    found = as_combination("noise:1e+3+l2:0.5")
    assert found.parts == (OutputPerturbation(1000.0), L2(0.5))
    assert str(found) == "noise:1000+l2:0.5"
    assert as_combination(" none ") == Combination()
    assert str(Combination()) == "none"


def test_defenses_may_be_objects_and_lists_of_them():
    l2, noise = L2(0.5), OutputPerturbation(2.0)
    assert as_combination(l2).parts == (l2,)
    assert as_combination([noise, "l2:0.5"]).parts == (noise, l2)


@pytest.mark.parametrize("written", ["none+l2:1", "", "l2:1+none"])
def test_what_has_a_part_that_is_no_defense_is_refused(written):
    with pytest.raises(InputError, match="a part that is no defense"):
        as_combination(written)


def test_an_unknown_defense_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'noise'"):
        as_combination("l2:1+nois:1")


def test_none_is_always_first_and_each_stands_once():
    found = combinations(["l2:0.5", "noise:1", "l2:0.50", "none"])
    assert [str(one) for one in found] == ["none", "l2:0.5", "noise:1"]


@pytest.mark.parametrize(
    ("given", "message"),
    [("l2:0.5", "give a list"), (7, "give a list"), ([], "no defense to compare"),
     (["none"], "no defense to compare")],
)  # fmt: skip
def test_what_is_no_list_of_defenses_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        combinations(given)


def test_the_first_is_wrapped_first():
    recipe = as_recipe(LogisticRegression(), "plain")
    both = around(as_combination("l2:0.5+noise:1"), recipe, 10)
    assert both.recipe.name == "plain+l2:0.5+noise:1"
    assert both.name == "l2:0.5+noise:1"
    assert around(Combination(), recipe, 10).recipe is recipe
    with pytest.raises(InputError, match="before any other defense"):
        around(as_combination("noise:1+l2:0.5"), recipe, 10)


def test_which_defenses_change_the_training():
    recipe = as_recipe(LogisticRegression(), "plain")
    assert around(as_combination("l2:0.5+noise:1"), recipe, 10).trains
    assert not around(as_combination("noise:1"), recipe, 10).trains
    assert not around(Combination(), recipe, 10).trains


def test_a_promise_is_that_of_the_last_that_changes_the_models():
    recipe = as_recipe(LogisticRegression(), "plain")
    noise, promise = OutputPerturbation(1.0), Promising(3.0)
    promised = around(Combination((promise,)), recipe, 10)
    assert promised.budget == (3.0, 0.01)
    assert promised.guarantee == "(3, 0.01)-differential privacy"
    # Noise on a finished model takes nothing back; another training does.
    assert around(Combination((promise, noise)), recipe, 10).budget == (3.0, 0.01)
    assert around(Combination((Promising(1.0), promise)), recipe, 10).budget == (3.0, 0.01)
    assert around(Combination((promise, L2(1.0))), recipe, 10).budget is None
    plain = around(Combination(), recipe, 10)
    assert plain.budget is None
    assert plain.guarantee == "no formal guarantee"


def test_the_channels_are_wrapped_in_order():
    release = as_combination("round:1+temperature:2")
    X = np.random.default_rng(0).normal(size=(30, 2))
    records = Records(X, (X[:, 0] > 0).astype(int))
    model = as_model(LogisticRegression().fit(X, records.y))
    wrapped = release.release(model, records, records)(channel_of("probabilities", 0))
    expected = channel_of("probabilities", 0)
    for part in ("round:1", "temperature:2"):
        expected = as_defense(part).wrap_channel(expected)
    np.testing.assert_array_equal(wrapped.observe(model, records), expected.observe(model, records))
    assert wrapped == expected


def test_a_defense_that_must_learn_of_the_model_is_given_members_and_reference():
    @dataclass(frozen=True)
    class Learning(Defense):
        """Remembers what it was fitted on."""

        name: ClassVar[str] = "learning"
        paper: ClassVar[str] = "none"
        example: ClassVar[str] = "learning"

        seen: tuple = ()

        def fitted(self, model, members, reference):
            return Learning((model, members, reference))

        def wrap_channel(self, channel):
            return (self.seen, channel)

    assert Combination((Learning(),)).release("m", "in", "D")("c") == (("m", "in", "D"), "c")
