"""The code that stands in the documentation, for the tests that run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def text_of(page: str) -> str:
    """A page, by its path in the project."""
    return (ROOT / page).read_text("utf-8")


def blocks_of(text: str) -> list[str]:
    """The blocks of Python in a text."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(page: str, *blocks: str) -> dict[str, Any]:
    """Run these blocks of a page, by default all, as a user types them; gives what they define."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, block in enumerate(blocks or blocks_of(text_of(page)), start=1):
        # Without the future imports of this file.
        exec(compile(block, f"{page}, block {number}", "exec", dont_inherit=True), namespace)
    return namespace
