"""Checks of options, each refused in one sentence: its name, what it must be, what was given."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

from leakscope.errors import InputError


def whole_number(option: str, value: Any, low: int, high: int | None = None) -> int:
    """The value, if it is a whole number from low to high, both included."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"The option {option} must be a whole number {bounds}, got {value!r}")
    return int(value)


def magnitude(option: str, value: Any, *, least: float = 0.0, above: float | None = None) -> float:
    """The value, if it is a finite number of at least ``least``, or above ``above`` if given."""
    limit = least if above is None else above
    if not _is_number(value) or not limit <= value < math.inf or value == above:
        bounds = f"of at least {least:g}" if above is None else f"above {above:g}"
        raise InputError(f"The option {option} must be a finite number {bounds}, got {value!r}")
    return float(value)


def share(option: str, value: Any) -> float:
    """The value, if it is a number between 0 and 1, neither included."""
    if not _is_number(value) or not 0 < value < 1:
        raise InputError(f"The option {option} must be between 0 and 1, got {value!r}")
    return float(value)


def one_of(option: str, value: Any, choices: Collection[str]) -> str:
    """The value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(str(value), choices, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(choices)}"
        raise InputError(f"The option {option} cannot be {value!r}; {hint}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
