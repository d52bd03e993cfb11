"""A threshold chosen on a fifth of the records, to be judged on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError
from leakscope.metrics.intervals import finite
from leakscope.metrics.samples import Codes, check_mask, split_units
from leakscope.protocols import Bools, Floats

CHOSEN = "chosen on a fifth of the records, judged on the others"
GIVEN = "given"


@dataclass(frozen=True)
class Threshold:
    """The score from which on a record is called a member, and where it comes from."""

    value: float
    source: str

    def to_dict(self) -> dict[str, float | str | None]:
        """For JSON."""
        return {"value": finite(self.value), "source": self.source}


def best_threshold(scores: Floats, membership: Bools) -> float:
    """The threshold with the largest TPR − FPR on these records.

    It lies half-way between two scores that occur, so that rounding moves nobody across it. Of
    equally good ones the highest is taken, which accuses the fewest.
    """
    values, where = np.unique(scores, return_inverse=True)
    members = np.bincount(where[membership], minlength=len(values))
    others = np.bincount(where[~membership], minlength=len(values))
    # TPR − FPR over a common denominator: whole numbers, so that equally good is exactly equal.
    gain = members * others.sum() - others * members.sum()
    total = np.cumsum(gain[::-1])
    best = len(values) - 1 - int(np.argmax(total))
    if best == 0:
        return float(values[0])
    middle = values[best - 1] / 2 + values[best] / 2
    return float(middle if middle > values[best - 1] else values[best])


def draw_calibration(
    scores: Floats,
    membership: Bools,
    unit: Codes | None = None,
    seed: int = 0,
    keys: Sequence[NDArray[np.intp]] = (),
) -> Bools:
    """A random fifth of each side (n,), whole units together, whatever the order of the records.

    Without units the records are sorted by score before drawing, and by the keys where scores
    tie: records that tie in everything are the same for every later use.
    """
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(scores), dtype=bool)
    for side, name in ((membership, "member"), (~membership, "non-member")):
        rows = np.flatnonzero(side)
        if unit is None:
            blocks = rows[np.lexsort((*(key[rows] for key in keys), scores[rows]))]
        else:
            blocks = np.unique(unit[rows])
        if len(blocks) < 2:
            raise InputError(
                f"There is only 1 {name}{'' if unit is None else ' unit'}: a threshold needs one "
                f"to be chosen on and another to be judged on; give more records or a threshold"
            )
        taken = blocks[rng.permutation(len(blocks))[: max(1, round(len(blocks) / 5))]]
        if unit is None:
            chosen[taken] = True
        else:
            chosen[rows] = np.isin(unit[rows], taken)
    return chosen


def check_calibration(calibration: ArrayLike, membership: Bools, unit: Codes | None) -> Bools:
    """A calibration mask (n,) that leaves both sides on both sides of it, and units whole."""
    mask = check_mask(calibration, len(membership), "calibration mask")
    for inside, what in ((mask, "inside"), (~mask, "outside")):
        for side, name in ((membership, "member"), (~membership, "non-member")):
            if not (inside & side).any():
                raise InputError(
                    f"There is no {name} {what} the calibration mask: a threshold is chosen "
                    f"inside and judged outside, with both sides in each"
                )
    if unit is not None and (straddling := split_units(unit, mask)).any():
        raise InputError(
            f"The calibration mask splits the rows of {np.count_nonzero(straddling)} units: "
            f"a unit is inside or outside as a whole"
        )
    return mask
