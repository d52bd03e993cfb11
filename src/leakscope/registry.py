"""What there is: attacks, channels, defenses and more, registered where they stand.

An entry's name, paper and one-line summary come from the thing itself, so the command line, the
report, the documentation and the contract tests list it with no other edit.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from leakscope.errors import InputError, UnknownNameError

# Where each kind lives: looking one up imports that package's modules, which register themselves.
HOMES = {
    "attack": "leakscope.attacks",
    "channel": "leakscope.channels",
    "dataset": "leakscope.datasets",
    "defense": "leakscope.defenses",
    "extraction": "leakscope.extractions",
    "experiment": "leakscope.papers",
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
        own = name or getattr(thing, "name", None)
        if not own:
            raise InputError(
                f"{_origin(thing)} has no name to be registered under; give it the attribute name, "
                f"or write @register({kind!r}, 'its name')"
            )
        taken = _ENTRIES[kind].get(own)
        if taken is not None and _origin(taken.thing) != _origin(thing):
            raise InputError(
                f"The {kind} {own!r} is already {_origin(taken.thing)}; give {_origin(thing)} "
                "another name"
            )
        _ENTRIES[kind][own] = Entry(kind, own, thing, paper or getattr(thing, "paper", ""))
        return thing

    return enter


def _origin(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


@cache
def _discover(package_name: str) -> None:
    package = importlib.import_module(package_name)
    for module in pkgutil.walk_packages(package.__path__, package_name + "."):
        importlib.import_module(module.name)


def entries(kind: str) -> Iterator[Entry]:
    """All entries of a kind, by name."""
    if kind not in HOMES:
        raise UnknownNameError("kind of entry", kind, HOMES)
    _discover(HOMES[kind])
    yield from (entry for _, entry in sorted(_ENTRIES[kind].items()))


def lookup(kind: str, name: str) -> Entry:
    """The entry of this name, or an error that suggests the nearest name."""
    found = {entry.name: entry for entry in entries(kind)}
    if name not in found:
        raise UnknownNameError(kind, name, found)
    return found[name]
