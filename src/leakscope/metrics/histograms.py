"""How the scores of members and of non-members are spread, in shared bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope.metrics.samples import check_scores
from leakscope.protocols import Floats


@dataclass(frozen=True)
class Histogram:
    """Shares of members (k,) and of non-members (k,) between edges (k + 1,); each sums to 1."""

    edges: Floats
    members: Floats
    nonmembers: Floats

    def to_dict(self) -> dict[str, list[float]]:
        """For JSON."""
        return {
            "edges": self.edges.tolist(),
            "members": self.members.tolist(),
            "nonmembers": self.nonmembers.tolist(),
        }


def histogram(
    scores: ArrayLike, membership: ArrayLike, bins: int = 40, cut: float = 0.005
) -> Histogram:
    """Bins of equal width over the scores (n,) but for a share ``cut`` at either end.

    What lies beyond is counted in the outermost bins, so that a few extreme scores do not squeeze
    all others into one.
    """
    values, members = check_scores(scores, membership)
    low, high = np.quantile(values, [cut, 1 - cut], method="inverted_cdf")
    if low == high:
        low, high = values.min(), values.max()
    if low == high:
        low, high = low - max(0.5, abs(low) / 1000), high + max(0.5, abs(high) / 1000)
    position = np.linspace(0.0, 1.0, bins + 1)
    # Weighted, not low + step: the width itself may be too large for a float.
    edges = low * (1 - position) + high * position
    where = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
    shares = [
        np.bincount(where[side], minlength=bins) / np.count_nonzero(side)
        for side in (members, ~members)
    ]
    return Histogram(edges, shares[0], shares[1])
