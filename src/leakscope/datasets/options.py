"""Checks of the options of data sets, each refused in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from leakscope.errors import InputError


def check_options(dataset: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse an option the data set does not have, or a value that is not of its default's kind."""
    for option, value in given.items():
        if option not in known:
            raise InputError(
                f"The data set {dataset!r} has no option {option!r}; {_suggestion(option, known)}"
            )
        kind = _kind(known[option])
        if kind is not None and not _is_a(value, kind):
            raise InputError(
                f"The option {option} of the data set {dataset!r} is {value!r}, where "
                f"{_WORDS[kind]} is needed, such as {known[option]!r}"
            )


_WORDS: dict[type, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def _kind(default: Any) -> type | None:
    # An option without a default says nothing about its kind: its data set checks it.
    return None if default is None else type(default)


def _is_a(value: Any, kind: type) -> bool:
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    abstract: dict[type, type] = {int: Integral, float: Real}
    return isinstance(value, abstract.get(kind, kind))


def _suggestion(option: str, known: Mapping[str, Any]) -> str:
    if not known:
        return "it has none"
    near = difflib.get_close_matches(option, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(known)}"
