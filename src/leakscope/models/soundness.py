"""Whether a model from a stranger's file is one that training could have made.

Trees, neighbours and support vectors are arrays of places in other arrays, and the compiled code
that answers with them does not look whether those places exist: a file that names others crashes
the program, or has it read and write where it must not. So every such array is looked at before
the model is asked anything. Models that were made in this program are the user's own, and are not;
boosters are looked at before they are read at all, see skops_boosters.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.errors import UntrustedFileError
from leakscope.models.sound_estimators import CHECKS
from leakscope.models.sound_trees import Unsound

_PLAIN = (str, bytes, bytearray, int, float, complex, type, type(None), np.generic, np.ufunc)
_TREES = ("Tree", "TreePredictor")

# More than any machine has at work; LightGBM crashes where it cannot have as many as it asks for.
MOST_THREADS = 1024
_THREADS = ("n_jobs", "num_threads", "num_thread", "nthread", "nthreads")


def refuse_unsound(model: Any, path: Path) -> None:
    """Refuse a model with a part that no training makes."""
    known: set[int] = set()  # trees that were looked at, with the model that they belong to
    trees = []
    for part in _parts(model):
        try:
            _refuse_replaced(part)
            _refuse_threads(part)
            for check in _checks(part):
                known.update(id(tree) for tree in check(part))
        except Exception as error:  # whatever a part that is missing or of another type raises
            why = str(error) if isinstance(error, Unsound) else "lacks what its type has"
            raise refused(path, type(part).__name__, why) from error
        if type(part).__name__ in _TREES:
            trees.append(part)
    for tree in trees:
        if id(tree) not in known:
            raise refused(path, type(tree).__name__, "belongs to no model")


def refused(path: Path, name: str, why: str) -> UntrustedFileError:
    """What to say of a file that holds a part of a type, and what is wrong with the part."""
    return UntrustedFileError(
        f"The model file {str(path)!r} holds a {name} that {why}: no training makes such a one, "
        "and using it could crash the program; save the model again"
    )


def _checks(part: Any) -> Iterator[Any]:
    for base in type(part).__mro__:
        if base.__name__ in CHECKS:
            yield CHECKS[base.__name__]


def _parts(model: Any) -> Iterator[Any]:
    """Every object in a model that is no array and no container, itself included, each once."""
    left, seen = [model], set()
    while left:
        one = left.pop()
        if isinstance(one, _PLAIN) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            left.extend(one.ravel().tolist() if one.dtype.hasobject else ())
        elif isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, (list, tuple, set)):
            left.extend(one)
        else:
            yield one
            left.extend(getattr(one, "__dict__", {}).values())


def _refuse_replaced(part: Any) -> None:
    """Refuse a part that brings something else in the place of a method of its type."""
    for name in getattr(part, "__dict__", {}):
        own = type(inspect.getattr_static(type(part), name, None))
        if hasattr(own, "__get__") and not hasattr(own, "__set__"):
            raise Unsound(f"brings its own {name!r:.60}")


def _refuse_threads(part: Any) -> None:
    """Refuse an estimator that asks for more threads than there can be."""
    held = getattr(part, "__dict__", {})
    for options in (held, held.get("_other_params", {})):  # LightGBM has other names there
        for name in _THREADS:
            asked = options.get(name)
            if asked is not None and not abs(asked) <= MOST_THREADS:
                raise Unsound(f"asks for {asked!r:.40} threads")
