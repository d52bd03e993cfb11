"""Attacks: evidence in, a membership score per record out, each registered where it stands.

Two are also plain functions of arrays, loaded when they are first used: ``lira`` and ``rmia``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["lira", "rmia"]

if TYPE_CHECKING:
    from leakscope.attacks.likelihood_ratio import lira
    from leakscope.attacks.relative import rmia
else:
    _HOMES = {"lira": "likelihood_ratio", "rmia": "relative"}

    # Hidden from type checkers, which would otherwise take every unknown name for a public one.
    def __getattr__(name: str) -> object:
        """The public function of this name, imported on first use and kept."""
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
