"""JSON as its standard has it: no NaN, no Infinity, and no name twice in an object.

Of two values for one name, each reader of a file could believe another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

# Bytes of a file: far more than any report has, and no more than fits the memory as objects.
MOST_BYTES = 64 * 2**20


def read_json(path: Path) -> Any:
    """What a file of JSON holds; a ValueError says why it is none, or that it is too large.

    No more than the limit is read: a device may have no end.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than the {MOST_BYTES // 2**20} MiB that are read")
    return strict_json(content.decode("utf-8"))


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
