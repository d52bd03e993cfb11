from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from leakscope.evidence import Evidence
from leakscope.models import Remembering, as_model
from leakscope.models.predictions import SavedPredictions
from leakscope.protocols import BOTH, Attack, Channel, Defense, Floats, Model, Recipe, Task

X = np.arange(8.0).reshape(4, 2)
Y = np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    "model",
    [
        as_model(LogisticRegression().fit(X, Y)),
        as_model(Ridge().fit(X, Y)),
        as_model(lambda X: X[:, 0]),
        Remembering(as_model(lambda X: X[:, 0])),
        SavedPredictions(Y),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_model_offers_the_protocol(model: Model) -> None:
    assert isinstance(model, Model)
    assert ("probabilities" in model.abilities) <= (model.task == "classification")


@pytest.mark.parametrize("thing", [LogisticRegression().fit(X, Y), lambda X: X, None])
def test_what_does_not_offer_it_is_no_model(thing: Any) -> None:
    assert not isinstance(thing, Model)


def test_an_attack_needs_no_threshold_and_no_knowledge_of_its_own() -> None:
    @dataclass(frozen=True)
    class Mine(Attack):
        name: ClassVar[str] = "mine"
        paper: ClassVar[str] = ""
        channel: ClassVar[str] = "loss"
        tasks: ClassVar[frozenset[Task]] = BOTH

        def score(self, evidence: Evidence) -> Floats:
            return -evidence.observations[:, 0]

    assert Mine().threshold(cast(Evidence, None)) is None
    assert Mine().knowledge == "none"


def test_a_defense_leaves_alone_what_it_does_not_wrap_and_promises_nothing() -> None:
    @dataclass(frozen=True)
    class Mine(Defense):
        name: ClassVar[str] = "mine"
        paper: ClassVar[str] = ""
        example: ClassVar[str] = "mine:1"

    recipe, channel = cast(Recipe, object()), cast(Channel, object())
    assert Mine().wrap_recipe(recipe) is recipe
    assert Mine().wrap_channel(channel) is channel
    assert Mine().budget(recipe, 10) is None
