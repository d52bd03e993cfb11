"""Names that a shell completes: attacks, channels, data sets, defenses, recipes, experiments.

A press of the Tab key cannot wait for numpy and torch, so that names are read from the source in
which things are registered. Those that only running the code would tell are looked for, the slow
way, where no other name fits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from leakscope.registry import HOMES, entries

Complete: TypeAlias = Callable[[str], list[str]]

# What stands between names in one option: "a,b" and "a+b".
_BETWEEN = re.compile(r"[,+]")


def completed(kind: str) -> Complete:
    """What completes one name of this kind, for an option of typer."""

    def complete(incomplete: str) -> list[str]:
        return _fitting(kind, incomplete)

    return complete


def several(kind: str) -> Complete:
    """What completes the last of several names, separated by commas or plus signs."""

    def complete(incomplete: str) -> list[str]:
        *_, last = _BETWEEN.split(incomplete)
        before = incomplete.removesuffix(last)
        return [before + name for name in _fitting(kind, last)]

    return complete


def _fitting(kind: str, beginning: str) -> list[str]:
    found = [name for name in written_names(kind) if name.startswith(beginning)]
    if found:
        return found
    return [entry.name for entry in entries(kind) if entry.name.startswith(beginning)]


def written_names(kind: str) -> list[str]:
    """The names of this kind that stand in the source as they are, in order."""
    spec = find_spec(HOMES[kind])
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    files = [file for folder in folders for file in Path(folder).rglob("*.py")]
    return sorted({name for file in files for name in _names_in(file, kind)})


def _names_in(file: Path, kind: str) -> Iterator[str]:
    text = file.read_text("utf-8")
    if "@register(" not in text:
        return
    module = ast.parse(text)
    constants = _constants(module)
    for thing in module.body:
        if not isinstance(thing, ast.ClassDef | ast.FunctionDef):
            continue
        for call in thing.decorator_list:
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "register":
                continue
            kinds, *named = [_value(argument, constants) for argument in call.args]
            name = named[0] if named else _constants(thing).get("name")
            if kinds == kind and isinstance(name, str):
                yield name


def _constants(thing: ast.Module | ast.ClassDef | ast.FunctionDef) -> dict[str, Any]:
    """Names that a module or a class gives to plain values, as in ``name = "loss"``."""
    found: dict[str, Any] = {}
    for line in thing.body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
            found |= {one.id: line.value.value for one in line.targets if isinstance(one, ast.Name)}
        if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Constant):
            found[ast.unparse(line.target)] = line.value.value
    return found


def _value(argument: ast.expr, constants: dict[str, Any]) -> Any:
    if isinstance(argument, ast.Constant):
        return argument.value
    return constants.get(argument.id) if isinstance(argument, ast.Name) else None
