"""The two baselines that always stand beside a training defense (Wang et al. 2020, as measured).

Pruning trains on, and ends with a lower accuracy in training: whether it leaks less depends on
whether it is compared with a model that was trained as long, or with one that was stopped where it
is as accurate in training. Both are therefore trained too, from what the defended models show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakscope.comparing.defending import NONE, Combination, Defended, around
from leakscope.comparing.judging import Judged
from leakscope.defenses.regularization import EarlyStopping, EqualCompute
from leakscope.errors import InputError
from leakscope.protocols import Defense, Recipe
from leakscope.recipes.torch import TorchRecipe

EQUAL_COMPUTE, EQUAL_ACCURACY = "equal compute", "early stopping at the same train accuracy"

# Equal compute as a user writes it.
LONGER = re.compile(rf"{EqualCompute.name}:\d+")

Rows = Mapping[str, Sequence[Judged]]


@dataclass(frozen=True)
class Baseline:
    """A baseline for the defenses it stands beside, or the reason why there is none.

    defense: how it is written; None where there is none.
    """

    kind: str
    beside: tuple[str, ...]
    defense: str | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "beside": list(self.beside)}


def described(said: Sequence[Baseline], names: Iterable[str]) -> dict[str, str]:
    """What each of these rows is that is a baseline and no defense, none apart."""
    kinds = {name: EQUAL_COMPUTE for name in names if LONGER.fullmatch(name)}
    return kinds | {
        one.defense: f"{one.kind} as {' and '.join(one.beside)}"
        for one in said
        if one.defense is not None
    }


def baselines(
    compared: Sequence[Defended], judged: Rows, recipe: Recipe, n: int
) -> tuple[list[Defended], list[Baseline]]:
    """What to train beside the training defenses, each once, and what is said of it.

    recipe: the undefended one, of models of n records.
    """
    made: dict[str, Defended] = {}
    said: list[Baseline] = []
    there = {one.name for one in compared}
    for one in compared:
        if not one.trains:
            continue
        for kind, find in FINDERS.items():
            defense, reason = _found(find, one.name, judged, recipe)
            if defense is not None:
                combination = Combination((defense,))
                try:
                    baseline = around(combination, recipe, n)
                except InputError as error:
                    defense, reason = None, str(error)
                else:
                    if baseline.name not in there:
                        made[baseline.name] = baseline
            name = None if defense is None else str(defense)
            said.append(Baseline(kind, (one.name,), name, reason))
    return [*made.values()], _joined(said)


def _found(
    find: Callable[[str, Rows], tuple[Defense | None, str]], name: str, judged: Rows, recipe: Recipe
) -> tuple[Defense | None, str]:
    if not isinstance(recipe, TorchRecipe):
        return None, f"The recipe {recipe.name!r} has no epochs to add or to leave out."
    return find(name, judged)


def _as_long(name: str, judged: Rows) -> tuple[Defense | None, str]:
    """The undefended training for as many more epochs."""
    own, plain = (_mean(judged[one], "epochs") for one in (name, NONE))
    if own is None or plain is None:
        return None, f"How many epochs {name!r} was trained for is not known; run with fresh."
    extra = round(own - plain)
    if extra < 1:
        return None, f"{name!r} is trained for no more epochs than none, which is the baseline."
    return EqualCompute(extra), f"As many more epochs as {name!r} takes, without it."


def _as_accurate(name: str, judged: Rows) -> tuple[Defense | None, str]:
    """The undefended training, stopped where it is as accurate in training."""
    reached, plain = (_mean(judged[one], "train_accuracy") for one in (name, NONE))
    assert reached is not None
    assert plain is not None
    accuracy = round(reached, 3)
    if not 0 < accuracy < plain:
        return None, (
            f"{name!r} has a train accuracy of {reached:.3f}, which none does not pass: it is "
            f"{plain:.3f} at its end."
        )
    reason = f"Stopped after the first epoch with the train accuracy of {name!r}."
    return EarlyStopping(accuracy=accuracy), reason


FINDERS: dict[str, Callable[[str, Rows], tuple[Defense | None, str]]] = {
    EQUAL_COMPUTE: _as_long,
    EQUAL_ACCURACY: _as_accurate,
}


def _mean(rows: Sequence[Judged], key: str) -> float | None:
    values = [one.row[key] for one in rows]
    return None if None in values else float(np.mean(values))


def _joined(said: Sequence[Baseline]) -> list[Baseline]:
    """One entry for a baseline that stands beside several defenses."""
    joined: dict[str, Baseline] = {}
    for one in said:
        key = one.defense or one.reason
        before = joined.get(key, one)
        kind = before.kind if one.kind in before.kind else f"{before.kind}, {one.kind}"
        beside = tuple(dict.fromkeys((*before.beside, *one.beside)))
        joined[key] = replace(before, kind=kind, beside=beside)
    return [*joined.values()]
