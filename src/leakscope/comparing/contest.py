"""Every defense against every other: differences that are paired by seed and by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope.comparing.averaging import TAIL, Figures, within
from leakscope.comparing.defending import NONE
from leakscope.comparing.judging import Judged
from leakscope.metrics.intervals import Interval

# What is averaged over the seeds as it is.
MEANS = (
    "train_accuracy",
    "advantage",
    "auc",
    "train_seconds",
    "predict_seconds",
    "epochs",
)
PROMISES = ("epsilon", "delta", "guarantee")


@dataclass(frozen=True, eq=False)
class Contest:
    """All rows, by the defense, each with one per seed in the same order."""

    judged: Mapping[str, Sequence[Judged]]

    @property
    def names(self) -> list[str]:
        """The defenses, in the order of the rows."""
        return [*self.judged]

    @property
    def tail(self) -> float:
        """The chance left at each end of a difference: all of one defense's hold together."""
        return TAIL / max(len(self.judged) - 1, 1)

    def accuracy(self, one: str, other: str, tail: float | None = None) -> Interval:
        """The test accuracy of one, minus that of the other."""
        return (self._right(one) - self._right(other)).mean(tail or self.tail)

    def leaking(self, one: str, other: str, tail: float | None = None) -> Interval:
        """The accuracy of the strongest attack on one, minus that on the other."""
        return (self._found(one) - self._found(other)).mean(tail or self.tail)

    def beats(self, one: str, other: str) -> bool:
        """Whether one is surely more accurate and surely leaks less.

        At 95 % each, whatever the number of defenses: both by chance is rare enough.
        """
        better = self.accuracy(one, other, TAIL).low > 0
        return better and self.leaking(one, other, TAIL).high < 0

    def frontier(self) -> list[str]:
        """The defenses that no other one surely beats in both."""
        return [name for name in self.names if not self.beaten_by(name)]

    def beaten_by(self, name: str) -> list[str]:
        """Those that surely beat this one in both."""
        return [other for other in self.names if other != name and self.beats(other, name)]

    def summary(self, name: str) -> dict[str, Any]:
        """What one defense comes to over all seeds, for JSON."""
        rows = [one.row for one in self.judged[name]]
        beaten_by = self.beaten_by(name)
        return {
            "defense": name,
            "seeds": len(rows),
            "attack": Counter(row["attack"] for row in rows).most_common(1)[0][0],
            "test_accuracy": within(self._right(name).mean(), 0.0, 1.0).to_dict(),
            "attack_accuracy": _chosen(self._found(name), [row["low"] for row in rows]).to_dict(),
            "by_attack": self._by_attack(name),
            **{key: _mean([row[key] for row in rows]) for key in MEANS},
            "bytes": _whole(_mean([row["bytes"] for row in rows])),
            "js": _mean([row["leakage"] and row["leakage"]["js"]["value"] for row in rows]),
            **{key: rows[0][key] for key in PROMISES},
            "frontier": not beaten_by,
            "beaten_by": beaten_by,
            "against_none": None
            if name == NONE
            else {
                "test_accuracy": self.accuracy(name, NONE).to_dict(),
                "attack_accuracy": self.leaking(name, NONE).to_dict(),
            },
        }

    def _by_attack(self, name: str) -> dict[str, dict[str, float | None]]:
        """The mean accuracy of each attack that ran under all seeds."""
        judged = self.judged[name]
        return {
            attack: _chosen(
                Figures.of([one.by_attack[attack] for one in judged]),
                [one.row["by_attack"][attack]["low"] for one in judged],
            ).to_dict()
            for attack in judged[0].by_attack
            if all(attack in one.by_attack for one in judged)
        }

    def _right(self, name: str) -> Figures:
        return Figures.of([one.right for one in self.judged[name]])

    def _found(self, name: str) -> Figures:
        return Figures.of([one.found for one in self.judged[name]])


def _chosen(found: Figures, lows: Sequence[float]) -> Interval:
    """The mean accuracy of an attack that may have been chosen among several.

    lows: the rows' lower ends, which allow for the choice: so must that of their mean.
    """
    mean = within(found.mean(), 0.0, 1.0)
    return Interval(mean.value, min(mean.low, float(np.mean(lows))), mean.high)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
