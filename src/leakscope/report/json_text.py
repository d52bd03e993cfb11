"""JSON as its standard has it: no NaN, no Infinity, and no name twice in an object.

Of two values for one name, each reader of a file could believe another.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


def strict_json(text: str) -> Any:
    """What a text of JSON holds; a ValueError says why it is none."""
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"it has {name!r:.60} twice")
        found[name] = value
    return found
