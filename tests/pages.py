"""What stands in the documentation: its code, for the tests that run it, and its links."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What is run where it stands; whatever is not run has another language, or says why above itself:
# <!-- not run: the reason -->
RUN = ("python", "bash")

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)(?: +title=\"(?P<title>[^\"]+)\")? *$")
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+?) -->$")
_EXIT = re.compile(r"# exits with (\d)\b")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, "" if it has none, and the line it begins at.

    title: the file that it is; not_run: why it is not run, None if it is.
    """

    language: str
    title: str | None
    code: str
    line: int
    not_run: str | None

    @property
    def is_run(self) -> bool:
        return self.language in RUN and self.not_run is None and self.title is None


def every_page() -> list[str]:
    """Every page, by its path in the project."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page.relative_to(ROOT).as_posix() for page in found)


def text_of(page: str) -> str:
    """A page, by its path in the project."""
    return (ROOT / page).read_text("utf-8")


def all_blocks(text: str) -> list[Block]:
    """The blocks of any language in a text, in order."""
    lines, found, at = text.splitlines(), [], 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        end = lines.index(opened["indent"] + "```", at + 1)
        code = textwrap.dedent("\n".join(lines[at + 1 : end]) + "\n")
        marked = _NOT_RUN.match(lines[at - 1]) if at else None
        reason = marked[1] if marked else None
        found.append(Block(opened["language"], opened["title"], code, at + 1, reason))
        at = end + 1
    return found


def blocks_of(text: str) -> list[str]:
    """The blocks of Python in a text that are run."""
    return [one.code for one in all_blocks(text) if one.language == "python" and one.is_run]


def run(page: str, *blocks: str) -> dict[str, Any]:
    """Run these blocks of a page, by default all, as a user types them; gives what they define."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with forgetting():
        for number, block in enumerate(blocks or blocks_of(text_of(page)), start=1):
            _execute(block, f"{page}, block {number}", namespace)
    return namespace


def run_page(page: str, folder: Path) -> dict[str, Any]:
    """Run a page from top to bottom within a folder, the current one; gives what it defines.

    Python as it stands, commands by the program itself, and files are written where they are
    named.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with forgetting():
        for block in all_blocks(text_of(page)):
            if block.title is not None:
                (folder / block.title).write_text(block.code, "utf-8")
            elif block.is_run and block.language == "python":
                _execute(block.code, f"{page}, line {block.line}", namespace)
            elif block.is_run:
                for words, code in commands_of(block.code):
                    _type(words, code)
    return namespace


def commands_of(code: str) -> list[tuple[list[str], int]]:
    """The commands of a block, as lists of words, each with the exit code that it should have."""
    found = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        told = _EXIT.search(line)
        if words:
            found.append((words, int(told[1]) if told else 0))
    return found


def _execute(code: str, where: str, namespace: dict[str, Any]) -> None:
    # Without the future imports of this file.
    exec(compile(code, where, "exec", dont_inherit=True), namespace)


def _type(words: list[str], expected: int) -> None:
    """Run ``leakscope …``, or ``python FILE …``, in this process: imports are what takes long."""
    from leakscope.cli import main

    program, *rest = words
    if program == "leakscope":
        code = main(rest)
    else:
        assert program == "python", f"only leakscope and python are run, not {words}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", rest)
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(rest[0], run_name="__main__")
        code = ended.value.code
    assert code == expected, f"{shlex.join(words)} ended with {code}, not {expected}"


@contextmanager
def forgetting() -> Iterator[None]:
    """Take back what a page registers, and what it imports from its own folder."""
    from leakscope import registry

    path, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        own = {"__main__"}
        for name in set(sys.modules) - modules:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin is not None and Path(origin).parent == Path.cwd():
                own.add(name)
                del sys.modules[name]
        for entries in registry._ENTRIES.values():
            for name in [name for name, one in entries.items() if one.thing.__module__ in own]:
                del entries[name]


# --- links and headings -------------------------------------------------------------------------


def prose_of(text: str) -> str:
    """A page without its code, in which brackets are no links."""
    return re.sub(r"`[^`\n]+`", "", without_blocks(text))


def links_of(text: str) -> list[str]:
    """Where the links and pictures of a page lead."""
    prose = re.sub(r"<!--.*?-->", "", prose_of(text), flags=re.DOTALL)
    typed = re.findall(r"\]\(([^)\s]+)\)", prose)
    return typed + re.findall(r"<(?:a|img)\b[^>]*?(?:href|src)=\"([^\"]+)\"", prose)


def anchors_of(text: str) -> set[str]:
    """The anchors of a page's headings that are the same on the site and on GitHub.

    A heading that stands twice has none: the two number them differently.
    """
    headings = re.findall(r"^#{1,6} +(.+?) *$", without_blocks(text), re.MULTILINE)
    plain = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading) for heading in headings]
    found = [(_on_the_site(one), _on_github(one)) for one in plain]
    return {site for site, github in found if site == github and found.count((site, github)) == 1}


def without_blocks(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _on_the_site(heading: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    kept = re.sub(r"[^\w\s-]", "", ascii_only).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def _on_github(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
