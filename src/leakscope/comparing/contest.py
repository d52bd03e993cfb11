"""Every defense against every other: differences that are paired by seed and by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from leakscope.comparing.averaging import TAIL, Figures, Spread, within
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

# How many seeds are considered when none of the observed ones suffice.
MOST_SEEDS = 100
# Standard errors that a difference may fall short by at a power of 80 %.
MARGIN = float(ndtri(0.8))

BETTER, WORSE, SAME = "better", "worse", "no significant difference"


@dataclass(frozen=True, eq=False)
class Contest:
    """All rows, by the defense, each with one per seed in the same order.

    A difference is significant if its interval excludes 0. The intervals of one defense's
    differences hold together (Bonferroni). seeds: how many seeds to predict the intervals for, if
    the observed means and spread hold; the observed number by default. margin: standard errors by
    which chance may move a predicted mean the wrong way.
    """

    judged: Mapping[str, Sequence[Judged]]
    seeds: int | None = None
    margin: float = 0.0
    _spreads: dict[tuple[str, str, str], tuple[Spread, bool]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The defenses, in the order of the rows."""
        return [*self.judged]

    @property
    def observed_seeds(self) -> int:
        """How many seeds there are."""
        return len(self.judged[NONE])

    @property
    def tail(self) -> float:
        """The chance left at each end of a difference: all of one defense's hold together."""
        return TAIL / max(len(self.judged) - 1, 1)

    def accuracy(self, one: str, other: str, tail: float | None = None) -> Interval:
        """The test accuracy of one, minus that of the other."""
        return self._interval("right", one, other, tail)

    def leaking(self, one: str, other: str, tail: float | None = None) -> Interval:
        """The accuracy of the strongest attack on one, minus that on the other."""
        return self._interval("found", one, other, tail)

    def more_accurate(self, one: str, other: str) -> bool:
        """Whether one is significantly more accurate than the other."""
        return self.accuracy(one, other).low > 0

    def more_private(self, one: str, other: str) -> bool:
        """Whether one leaks significantly less than the other."""
        return self.leaking(one, other).high < 0

    def apart(self, one: str, other: str) -> bool:
        """Whether the two differ significantly in accuracy or privacy."""
        return any(
            better(first, second)
            for better in (self.more_accurate, self.more_private)
            for first, second in ((one, other), (other, one))
        )

    def beats(self, one: str, other: str) -> bool:
        """Whether one dominates the other significantly.

        It is significantly better in both, or in one of them where the other is exactly equal.
        """
        accurate, private = self.more_accurate(one, other), self.more_private(one, other)
        return (
            (accurate and private)
            or (private and self._equal("right", one, other))
            or (accurate and self._equal("found", one, other))
        )

    def frontier(self) -> list[str]:
        """The defenses that no other one significantly dominates."""
        return [name for name in self.names if not self.beaten_by(name)]

    def beaten_by(self, name: str) -> list[str]:
        """Those that significantly dominate this one."""
        return [other for other in self.names if other != name and self.beats(other, name)]

    def undecided_against(self, name: str) -> list[str]:
        """Those that may dominate this one, although none is shown to; sorted.

        Not those that this one is significantly better than in accuracy or privacy, and not those
        that are exactly equal in both.
        """
        if self.beaten_by(name):
            return []
        return sorted(
            other
            for other in self.names
            if other != name
            and not self.more_accurate(name, other)
            and not self.more_private(name, other)
            and not (self._equal("right", name, other) and self._equal("found", name, other))
        )

    def undecided(self) -> list[str]:
        """Those that are shown neither to be on the frontier nor to be dominated; sorted."""
        return sorted(name for name in self.names if self.undecided_against(name))

    def seeds_needed(self, question: Callable[[Contest], bool]) -> int | None:
        """With how many seeds the answer would be yes in 80 of 100 cases, if the spread stays.

        None: more than 100, or not to be said from one seed.
        """
        observed = self.observed_seeds
        if observed == 1:
            return None
        more = range(observed + 1, MOST_SEEDS + 1)
        return next((n for n in more if question(replace(self, seeds=n, margin=MARGIN))), None)

    def summary(self, name: str) -> dict[str, Any]:
        """What one defense comes to over all seeds, for JSON."""
        rows = [one.row for one in self.judged[name]]
        beaten_by = self.beaten_by(name)
        return {
            "defense": name,
            "seeds": len(rows),
            "attack": Counter(row["attack"] for row in rows).most_common(1)[0][0],
            "test_accuracy": within(self._figures("right", name).mean(), 0.0, 1.0).to_dict(),
            "attack_accuracy": _chosen(
                self._figures("found", name), [row["low"] for row in rows]
            ).to_dict(),
            "by_attack": self._by_attack(name),
            **{key: _mean([row[key] for row in rows]) for key in MEANS},
            "bytes": _whole(_mean([row["bytes"] for row in rows])),
            "js": _mean([row["leakage"] and row["leakage"]["js"]["value"] for row in rows]),
            **{key: rows[0][key] for key in PROMISES},
            "frontier": not beaten_by,
            "beaten_by": beaten_by,
            "undecided_against": self.undecided_against(name),
            "against_none": None if name == NONE else self._against_none(name),
        }

    def _against_none(self, name: str) -> dict[str, Any]:
        """The differences from no defense, each with what it means."""
        return {
            "test_accuracy": self.accuracy(name, NONE).to_dict(),
            "attack_accuracy": self.leaking(name, NONE).to_dict(),
            "accuracy": _signed(self.more_accurate, name),
            "privacy": _signed(self.more_private, name),
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

    def _figures(self, kind: str, name: str) -> Figures:
        return Figures.of([getattr(row, kind) for row in self.judged[name]])

    def _difference(self, kind: str, one: str, other: str) -> tuple[Spread, bool]:
        """One minus the other, and whether they are exactly equal; computed once."""
        key = (kind, one, other)
        if key not in self._spreads:
            difference = self._figures(kind, one) - self._figures(kind, other)
            self._spreads[key] = difference.spread(), difference.all_zero
        return self._spreads[key]

    def _interval(self, kind: str, one: str, other: str, tail: float | None) -> Interval:
        spread, _ = self._difference(kind, one, other)
        predicted = spread.with_seeds(self.seeds or spread.seeds)
        return predicted.interval(tail or self.tail, self.margin)

    def _equal(self, kind: str, one: str, other: str) -> bool:
        return self._difference(kind, one, other)[1]


def _signed(better: Callable[[str, str], bool], name: str) -> str:
    """Whether a defense is significantly better or worse than none."""
    if better(name, NONE):
        return BETTER
    return WORSE if better(NONE, name) else SAME


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
