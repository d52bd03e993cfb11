"""The worst case for each record of a ridge regression, with intervals: Rényi leakage and ε.

The models are those of ``ridge_leakage``; here each record is measured again without each group of
draws, which for a whole population would be too much to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from leakscope.errors import InputError
from leakscope.exact.draws import Draws, saying_why_singular
from leakscope.exact.renyi import epsilon_leakage, largest_orders, renyi_leakage
from leakscope.metrics.gaussian import max_divergence
from leakscope.metrics.intervals import Interval, finite, tail_of
from leakscope.metrics.jackknife import ends, interval_of_largest, root_ends
from leakscope.options import magnitude, share, whole_number
from leakscope.protocols import Floats, Indices

_CHUNK = 256  # records at a time


@dataclass(frozen=True, eq=False)
class WorstCase:
    """Rényi leakage of r records with intervals for the error of finite draws.

    orders (k,). renyi (r, k): the larger of both directions. epsilon (r,): what ln of the
    likelihood ratio exceeds with probability ``delta`` at the most, either way. The replicates,
    (r, k, G) and (r, G), leave out each group of draws. largest_order (r,): α*. max_divergence
    (r,): the largest ln ratio there is in favour of the record, infinite for most. If the records
    were chosen for their leakage, take another seed here: the largest of many estimates is too
    large.
    """

    records: Indices
    orders: tuple[float, ...]
    delta: float
    renyi: Floats
    epsilon: Floats
    largest_order: Floats = field(repr=False)
    max_divergence: Floats = field(repr=False)
    renyi_replicates: Floats = field(repr=False)
    epsilon_replicates: Floats = field(repr=False)
    confidence: float = 0.95

    @cached_property
    def renyi_ends(self) -> tuple[Floats, Floats]:
        """The lower and upper ends of renyi, (r, k) each; 0 to infinity where undecided."""
        return root_ends(self.renyi, self.renyi_replicates, tail_of(self.confidence))

    @cached_property
    def epsilon_ends(self) -> tuple[Floats, Floats]:
        """The lower and upper ends of epsilon, (r,) each."""
        return ends(self.epsilon, self.epsilon_replicates, tail_of(self.confidence))

    @property
    def largest_epsilon(self) -> Interval:
        """That of the record of whom most is told, by the fitted Gaussians; no promise."""
        tail = tail_of(self.confidence) / len(self.records)
        lows, _ = ends(self.epsilon, self.epsilon_replicates, tail)
        return interval_of_largest(self.epsilon, lows, self.epsilon_ends[1])

    @property
    def bounded(self) -> int:
        """Of how many records no model tells more than a finite max_divergence."""
        return int(np.isfinite(self.max_divergence).sum())

    def to_dict(self) -> dict[str, Any]:
        """For JSON: a row per record."""
        lows, highs = self.renyi_ends
        rows = [
            {
                "record": int(record),
                "epsilon": _interval(self.epsilon[i], *(end[i] for end in self.epsilon_ends)),
                "largest_order": finite(float(self.largest_order[i])),
                "max_divergence": finite(float(self.max_divergence[i])),
                "renyi": [
                    {"order": order, **_interval(self.renyi[i, j], lows[i, j], highs[i, j])}
                    for j, order in enumerate(self.orders)
                ],
            }
            for i, record in enumerate(self.records)
        ]
        return {
            "delta": self.delta,
            "largest_epsilon": self.largest_epsilon.to_dict(),
            "bounded": self.bounded,
            "records": rows,
        }


def ridge_worst_case(
    X: ArrayLike,
    y: ArrayLike,
    n: int,
    l2: float = 0.0,
    noise: float = 0.0,
    grid: float | None = None,
    draws: int = 1000,
    *,
    records: ArrayLike | None = None,
    orders: Sequence[float] = (2.0, 8.0),
    delta: float = 1e-5,
    seed: int = 0,
    workers: int | None = None,
) -> WorstCase:
    """The worst case of a ridge regression for some records, with intervals.

    The options are those of ``ridge_leakage``, and the same seed and draws give the same models.
    """
    if workers is not None:
        whole_number("workers", workers, 1)
    orders = _checked_orders(orders)
    share("delta", delta)
    with threadpool_limits(limits=1):  # many small products: threads of BLAS would only wait
        drawn = Draws.of(
            X, y, n=n, l2=l2, noise=noise, grid=grid, draws=draws, records=records, seed=seed
        )
        parts = Parallel(n_jobs=workers or -1, prefer="threads")(
            delayed(_measured)(drawn, part, orders, delta) for part in drawn.parts(_CHUNK)
        )
    renyi, epsilon, top, most = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return WorstCase(
        records=drawn.asked,
        orders=orders,
        delta=delta,
        renyi=renyi[:, 0],
        epsilon=epsilon[:, 0],
        largest_order=top,
        max_divergence=most,
        renyi_replicates=np.moveaxis(renyi[:, 1:], 1, 2),
        epsilon_replicates=epsilon[:, 1:],
    )


def _checked_orders(orders: Any) -> tuple[float, ...]:
    given = np.asarray(orders)
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"The orders must be a list of numbers above 1, got {orders!r}")
    return tuple(magnitude("orders", order, above=1) for order in given)


def _measured(
    drawn: Draws, part: slice, orders: Sequence[float], delta: float
) -> tuple[Floats, ...]:
    """For r records: renyi (r, 1 + G, k), epsilon (r, 1 + G), α* and D_∞ (r,)."""
    _, mean1, cov1, mean0, cov0 = drawn.gaussians(part)
    gaussians = mean1, cov1, mean0, cov0
    with saying_why_singular():
        renyi = np.stack([renyi_leakage(gaussians, order) for order in orders], axis=-1)
    mean1, cov1, mean0, cov0 = (one[:, 0] for one in gaussians)
    return (
        renyi,
        epsilon_leakage(gaussians, delta),
        largest_orders((mean1, cov1, mean0, cov0)),
        np.asarray(max_divergence(mean1, cov1, mean0, cov0)),
    )


def _interval(value: float, low: float, high: float) -> dict[str, float | None]:
    return Interval(float(value), float(low), float(high)).to_dict()
