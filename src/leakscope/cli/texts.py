"""Lists of names and of values in the text of one option."""

from __future__ import annotations

import csv
import json
from typing import Any

from leakscope.errors import InputError


def typed(option: str) -> str:
    """An option as it is typed."""
    return "--" + option.replace("_", "-")


def names_in(option: str, text: str | None) -> list[str] | None:
    """The names in a text such as ``a,b``, each once; ``"a,b",c`` for a name with a comma."""
    if text is None:
        return None
    try:
        found = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        found = []
    if not all(found) or not found:
        raise InputError(
            f"{typed(option)} is {text!r}, where names separated by commas are needed; "
            "put a name that holds a comma between double quotes"
        )
    return [*dict.fromkeys(found)]


def values_in(option: str, text: str | None, see: str = "`leakscope datasets`") -> dict[str, Any]:
    """The options in a text such as ``a=1,b=x``: numbers, true and false are read as such.

    see: what tells the names there are.
    """
    found: dict[str, Any] = {}
    for pair in names_in(option, text) or []:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise InputError(
                f"{typed(option)} has {pair!r}, where NAME=VALUE is needed; see {see} for the names"
            )
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):  # no JSON, or more digits or brackets than it takes
            found[name] = value
    return found
