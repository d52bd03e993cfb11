"""One figure or table of a paper: what it is asked with, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from leakscope.protocols import Progress, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = Literal["quick", "full"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """How large an experiment is and where it works.

    seeds: repetitions, by default as many as the scale has. data: a folder with data files.
    store: a folder for trials, which are resumed from there; without one they are not kept.
    """

    scale: Scale = "quick"
    seed: int = 0
    seeds: int | None = None
    data: Path | None = None
    store: Path | None = None
    workers: int | None = None
    progress: Progress = field(default=silent, compare=False)


@dataclass(frozen=True)
class Experiment:
    """What came out: the rows, the paper's own, and where its claims hold and where they do not.

    draw: the picture, on a figure that it makes; None where a table says it all.
    """

    experiment: str
    paper: str
    setup: Mapping[str, Any]
    rows: Sequence[Row]
    paper_rows: Sequence[Row]
    notes: Sequence[str]
    draw: Callable[[], Figure] | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the picture."""
        return {
            "experiment": self.experiment,
            "paper": self.paper,
            "setup": dict(self.setup),
            "rows": [dict(row) for row in self.rows],
            "paper_rows": [dict(row) for row in self.paper_rows],
            "notes": list(self.notes),
        }
