"""What releasing explanations adds to releasing predictions.

The question is not how well explanations are attacked, but how much better than the predictions
that are released anyway (Shokri, Strobel & Zick 2021, section 4.3.2, compare the two by eye).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.battery import Shot
from leakscope.auditing.choosing import EXPLANATIONS, explanations_of, parts_of
from leakscope.metrics.intervals import Interval
from leakscope.metrics.outcome import Outcome
from leakscope.metrics.paired import advantage_difference
from leakscope.protocols import Bools

# One chance in so many that an interval misses, at both ends together.
MISSES = 0.05
# Who is shown these needs no predictions.
MORE_THAN_PREDICTIONS = {"parameters"}


@dataclass(frozen=True, eq=False)
class Ring:
    """What the attacks decided of the records (n,) that had no part in choosing a threshold."""

    called: Mapping[str, Bools]
    inflation: Mapping[str, float]
    membership: Bools
    unit: NDArray[np.intp] | None

    def strongest(self, names: Sequence[str]) -> str:
        """The attack of these with the largest advantage."""
        return max(names, key=self._advantage)

    def _advantage(self, name: str) -> float:
        called, members = self.called[name], self.membership
        return float(called[members].mean() - called[~members].mean())

    def increase(self, names: Sequence[str], beside: Sequence[str]) -> Interval:
        """How much larger the largest advantage of these attacks is than that of those beside.

        None of them is chosen by what it achieved here: the interval is of the difference of the
        two largest true advantages, whichever attacks have them. The strongest of those beside is
        one attack, if unknown, so that a lower end that holds for each of ``names`` at once
        against every one beside is enough; and the other way round for the upper end.
        """
        lows, highs = (
            np.array([[self._difference(one, two, share) for two in beside] for one in names])
            for share in (len(names), len(beside))
        )
        return Interval(
            self._advantage(self.strongest(names)) - self._advantage(self.strongest(beside)),
            float(lows[:, :, 0].min(axis=1).max()),
            float(highs[:, :, 1].min(axis=1).max()),
        )

    def _difference(self, one: str, two: str, tries: int) -> tuple[float, float]:
        found = advantage_difference(
            self.called[one],
            self.called[two],
            self.membership,
            unit=self.unit,
            inflation=max(self.inflation[one], self.inflation[two]),
            confidence=1 - MISSES / tries,
        )
        return found.low, found.high


def what_explanations_add(
    shots: Mapping[str, Shot],
    outcomes: Sequence[Outcome],
    membership: Bools,
    calibration: Bools,
    clusters: NDArray[np.intp] | None,
) -> list[dict[str, Any]]:
    """Entries of the report: for all explanations together, and for each if there are several.

    Nothing where no attack saw an explanation, or none saw predictions alone.
    """
    judged = ~calibration
    ring = Ring(
        {one.attack: shots[one.attack].scores[judged] >= one.threshold.value for one in outcomes},
        {one.attack: shots[one.attack].inflation for one in outcomes},
        membership[judged],
        None if clusters is None else clusters[judged],
    )
    seen = {name: explanations_of(shots[name].attack) for name in ring.called}
    beside = [
        name
        for name, explanations in seen.items()
        if not explanations and not parts_of(shots[name].attack) & MORE_THAN_PREDICTIONS
    ]
    every = sorted(set().union(*seen.values()))
    if not every or not beside:
        return []
    kinds = [EXPLANATIONS, *every] if len(every) > 1 else every
    return [_entry(kind, ring, _through(kind, seen), beside) for kind in kinds]


def _through(kind: str, seen: Mapping[str, set[str]]) -> list[str]:
    """The attacks that see this kind of explanation, or any."""
    return [
        name for name, found in seen.items() if kind in found or (found and kind == EXPLANATIONS)
    ]


def _entry(kind: str, ring: Ring, names: Sequence[str], beside: Sequence[str]) -> dict[str, Any]:
    return {
        "explanation": kind,
        "attack": ring.strongest(names),
        "attacks": len(names),
        "beside": ring.strongest(beside),
        "attacks_beside": len(beside),
        "increase": ring.increase(names, beside).to_dict(),
    }
