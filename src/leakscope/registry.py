"""What there is: attacks, channels, data sets, recipes, kinds of model; each registered where it stands.

An entry's name, paper and one-line summary come from the thing itself, so the command line, the
report, the documentation and the contract tests list it with no other edit.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from leakscope.errors import UnknownNameError

# Where each kind lives: looking one up imports that package's modules, which register themselves.
HOMES = {
    "attack": "leakscope.attacks",
    "channel": "leakscope.channels",
    "dataset": "leakscope.datasets",
    "model": "leakscope.models",
    "recipe": "leakscope.recipes",
}

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One registered thing and what is said of it."""

    kind: str
    name: str
    thing: Any
    paper: str

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.thing) or "").partition("\n")[0]


_ENTRIES: dict[str, dict[str, Entry]] = {kind: {} for kind in HOMES}


def register(kind: str, name: str | None = None, *, paper: str = "") -> Callable[[T], T]:
    """Enter a class or function under a name: ``@register("attack")`` above its definition.

    The name and the paper default to the thing's own ``name`` and ``paper`` attributes.
    Registering another thing under a taken name is refused: results must keep their names.
    """
    if kind not in _ENTRIES:
        raise UnknownNameError("kind of entry", kind, _ENTRIES)

    def enter(thing: T) -> T:
        entry = Entry(
            kind=kind,
            name=name or getattr(thing, "name"),  # noqa: B009 - T is any class with a name
            thing=thing,
            paper=paper or getattr(thing, "paper", ""),
        )
        taken = _ENTRIES[kind].get(entry.name)
        if taken is not None and _origin(taken.thing) != _origin(thing):
            raise ValueError(f"The {kind} {entry.name!r} is already {_origin(taken.thing)}")
        _ENTRIES[kind][entry.name] = entry
        return thing

    return enter


def _origin(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _discover(package_name: str) -> None:
    package = importlib.import_module(package_name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", []), package_name + "."):
        importlib.import_module(module.name)


def entries(kind: str) -> Iterator[Entry]:
    """All entries of a kind, by name."""
    _discover(HOMES[kind])
    yield from (entry for _, entry in sorted(_ENTRIES[kind].items()))


def lookup(kind: str, name: str) -> Entry:
    """The entry of this name, or an error that suggests the nearest name."""
    found = {entry.name: entry for entry in entries(kind)}
    if name not in found:
        raise UnknownNameError(kind, name, found)
    return found[name]
