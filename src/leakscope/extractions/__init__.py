"""Extractions: attacks that choose their queries and bring back records, each registered here.

They ask an oracle and see no model. What they bring back is a ``Disclosure``; the public names are
loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "Disclosure",
    "InfluenceGraph",
    "Reconstruction",
    "SelfReveal",
    "StaticQueries",
    "Traversal",
]

if TYPE_CHECKING:
    from leakscope.extractions.disclosure import Disclosure
    from leakscope.extractions.influence_graph import InfluenceGraph
    from leakscope.extractions.reconstruction import Reconstruction
    from leakscope.extractions.self_reveal import SelfReveal
    from leakscope.extractions.static import StaticQueries
    from leakscope.extractions.traversal import Traversal
else:
    _HOMES = {
        "Disclosure": "disclosure",
        "InfluenceGraph": "influence_graph",
        "Reconstruction": "reconstruction",
        "SelfReveal": "self_reveal",
        "StaticQueries": "static",
        "Traversal": "traversal",
    }

    # Hidden from type checkers, which would otherwise take every unknown name for a public one.
    def __getattr__(name: str) -> object:
        """The public thing of this name, imported on first use and kept."""
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
