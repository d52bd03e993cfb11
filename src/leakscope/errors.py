"""Every error Leakscope raises on purpose.

LeakscopeError
├── InputError (ValueError)               something handed in is wrong: a value, a shape, an option
│   ├── RecordsError                      … in the records: it names the column and the row
│   ├── ModelError                        … in the model, or in what it answered
│   └── UnknownNameError (KeyError)       … a name nothing is registered under; suggests the nearest
├── NotApplicableError                    an attack or control cannot run here; the report says why
├── MissingDataError (FileNotFoundError)  a data file is not there: where to get and to put it
├── MissingExtraError (ImportError)       an optional package is needed: how to install it
├── OracleBudgetError                     more queries than a released model still answers
├── StoreError (OSError)                  the store of trials cannot be used: full, locked, not ours
└── UntrustedFileError                    a file that could run code when loaded was refused

Each message is one sentence: what was wrong, which value, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NAMED = 16  # names to choose from in a sentence


class LeakscopeError(Exception):
    """Anything Leakscope refuses to do, with one sentence that says why."""


class InputError(LeakscopeError, ValueError):
    """Something handed in is wrong."""


class RecordsError(InputError):
    """The records are wrong: the message names the column and the row."""


class ModelError(InputError):
    """The model, or what it answered, is wrong."""


class UnknownNameError(InputError, KeyError):
    """Nothing is registered under this name."""

    # The arguments are kept as they came, so that the error survives the way from a worker.
    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(kind, name, sorted(known))

    def __str__(self) -> str:
        kind, name, known = self.args
        near = difflib.get_close_matches(str(name), known, n=1)
        choice = f"choose from: {_first(known)}" if known else "there are none"
        return f"There is no {kind} named {name!r}; " + (
            f"did you mean {near[0]!r}?" if near else choice
        )


def _first(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class NotApplicableError(LeakscopeError):
    """An attack, channel or control cannot run here; reported by name, never skipped silently."""


class MissingDataError(LeakscopeError, FileNotFoundError):
    """A data file is not where it should be."""


class MissingExtraError(LeakscopeError, ImportError):
    """An optional package is needed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)

    def __str__(self) -> str:
        what, extra = self.args
        return f"{what} needs an optional package; pip install 'leakscope[{extra}]'"


class OracleBudgetError(LeakscopeError):
    """More queries than the oracle still answers; none of them was answered."""


class StoreError(LeakscopeError, OSError):
    """The folder in which models are kept cannot be used; what is finished is still there."""


class UntrustedFileError(LeakscopeError):
    """A file that could run code when loaded was refused."""
