"""What would stop an adversary: defenses that wrap a recipe or a channel."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from leakscope.errors import InputError
from leakscope.registry import lookup

if TYPE_CHECKING:
    from leakscope.defenses.crowd import CrowdedExplanations
    from leakscope.defenses.distillation import Distillation
    from leakscope.defenses.dpsgd import DPSGD
    from leakscope.defenses.drawn import ExponentialExplanations
    from leakscope.defenses.memguard import MemGuard
    from leakscope.defenses.minmax import MinMax
    from leakscope.defenses.noise import OutputPerturbation
    from leakscope.defenses.pruning import Pruning, search_budgets
    from leakscope.defenses.refusal import RefusedExplanations
    from leakscope.defenses.regularization import L2, EarlyStopping, EqualCompute, LabelSmoothing
    from leakscope.defenses.release import Rounded, SmoothedExplanations, Temperature, TopK
    from leakscope.leakage.mechanism import gaussian_sigma
    from leakscope.protocols import Defense

__all__ = [
    "DPSGD",
    "L2",
    "CrowdedExplanations",
    "Distillation",
    "EarlyStopping",
    "EqualCompute",
    "ExponentialExplanations",
    "LabelSmoothing",
    "MemGuard",
    "MinMax",
    "OutputPerturbation",
    "Pruning",
    "RefusedExplanations",
    "Rounded",
    "SmoothedExplanations",
    "Temperature",
    "TopK",
    "as_defense",
    "gaussian_sigma",
    "search_budgets",
]


def as_defense(thing: Defense | str) -> Defense:
    """A defense as it is, or as it is written: ``noise:0.1`` is its name and its first option."""
    if not isinstance(thing, str):
        if not callable(getattr(thing, "wrap_recipe", None)):
            raise InputError(
                f"{thing!r} is no defense; give a Defense, or write one like 'noise:0.1'"
            )
        return thing
    name, _, text = thing.partition(":")
    found = lookup("defense", name).thing
    first, options = fields(found)[0], dict[str, float]()
    if text:
        number = _number(text, thing, found.example)
        whole = first.type == "int" and number.is_integer()
        options[first.name] = int(number) if whole else number
    elif first.default is MISSING or first.default is None:
        raise InputError(
            f"The defense {thing!r} needs a number after a colon; write it like {found.example!r}"
        )
    made: Defense = found(**options)
    return made


def _number(text: str, written: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"The defense {written!r} has no number after its colon; write it like {example!r}"
        ) from None


def __getattr__(name: str) -> Any:
    from importlib import import_module

    homes = {
        "CrowdedExplanations": "defenses.crowd",
        "DPSGD": "defenses.dpsgd",
        "Distillation": "defenses.distillation",
        "EarlyStopping": "defenses.regularization",
        "EqualCompute": "defenses.regularization",
        "ExponentialExplanations": "defenses.drawn",
        "L2": "defenses.regularization",
        "LabelSmoothing": "defenses.regularization",
        "MemGuard": "defenses.memguard",
        "MinMax": "defenses.minmax",
        "OutputPerturbation": "defenses.noise",
        "Pruning": "defenses.pruning",
        "RefusedExplanations": "defenses.refusal",
        "Rounded": "defenses.release",
        "SmoothedExplanations": "defenses.release",
        "Temperature": "defenses.release",
        "TopK": "defenses.release",
        "gaussian_sigma": "leakage.mechanism",
        "search_budgets": "defenses.pruning",
    }
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leakscope.{homes[name]}"), name)
