"""Who can tell that a record was used to train a model, how surely, and what would stop them.

Everything public is named here and loaded when it is first used, so that importing the package
costs next to nothing::

    import leakscope as ls

    report = ls.audit(model, members, nonmembers)

What it does is logged under the name ``leakscope``, and nothing is printed unless a program that
uses it says where to.
"""

from __future__ import annotations

import logging as _logging
from typing import TYPE_CHECKING

_logging.getLogger(__name__).addHandler(_logging.NullHandler())

__version__ = "0.1.0"

__all__ = [
    "HttpModel",
    "LeakscopeError",
    "Records",
    "Report",
    "__version__",
    "attacks",
    "audit",
    "audit_predictions",
    "channels",
    "check",
    "compare",
    "defenses",
    "errors",
    "exact",
    "leakage",
    "load_dataset",
    "metrics",
    "models",
    "register",
    "trials",
]

if TYPE_CHECKING:
    from leakscope import (
        attacks,
        channels,
        defenses,
        errors,
        exact,
        leakage,
        metrics,
        models,
        trials,
    )
    from leakscope.auditing import audit, audit_predictions
    from leakscope.comparing import compare
    from leakscope.datasets import load_dataset
    from leakscope.errors import LeakscopeError
    from leakscope.gate import check
    from leakscope.models.http import HttpModel
    from leakscope.records import Records
    from leakscope.registry import register
    from leakscope.report import Report
else:
    # Where each public name is defined. A package needs no entry: it is its own home.
    _HOMES = {
        "HttpModel": "models.http",
        "LeakscopeError": "errors",
        "Records": "records",
        "Report": "report",
        "audit": "auditing",
        "audit_predictions": "auditing",
        "check": "gate",
        "compare": "comparing",
        "load_dataset": "datasets",
        "register": "registry",
    }

    # Hidden from type checkers, which would otherwise take every unknown name for a public one.
    def __getattr__(name: str) -> object:
        """The public thing of this name, imported on first use and kept."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
        value = getattr(module, name) if name in _HOMES else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names alone, for completion."""
    return [*__all__]
