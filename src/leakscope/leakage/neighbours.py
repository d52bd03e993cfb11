"""How far the nearest neighbours of a model are, among the models with a record and without it.

Points (m, c, w) are what m models show of c records. Distances do not depend on who is a member,
so that they are sorted once, and each membership (m, c) only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from leakscope.metrics.samples import Codes
from leakscope.protocols import Bools, Floats

# From a membership (m, c) and a number of neighbours for each record (c,), a mean over the members
# and one over the others, (c,) each.
Wider = Callable[[Bools, Codes], list[Floats]]

# Farther than any observation, and nearer than any two.
FAR, TINY = 1e150, 1e-150


def wider_anywhere(points: Floats) -> Wider:
    """How much farther the k-th neighbour is on the other side than on a model's own, in logs.

    For k (c,) times the number of columns: the mean over members, and that over the others, (c,).
    """
    m, c, w = points.shape
    squares = np.zeros((c, m, m))
    for column in points.transpose(2, 1, 0):
        squares += np.square(column[:, :, None] - column[:, None, :])
    squares[:, np.arange(m), np.arange(m)] = np.inf  # no neighbour of itself: sorted last
    order = np.argsort(squares, axis=2)[..., :-1]
    logs = np.log(np.take_along_axis(squares, order, axis=2)) * (w / 2)
    neighbour = order + m * np.arange(c)[:, None, None]  # its place among all

    def measure(membership: Bools, k: Codes) -> list[Floats]:
        sides = membership.T
        around = np.take(np.ravel(sides), neighbour)
        own = np.cumsum(around == sides[..., None], axis=2, dtype=np.int32)
        other = np.arange(1, m, dtype=np.int32) - own
        places = [np.sum(seen < k[:, None, None], axis=2, keepdims=True) for seen in (own, other)]
        # Where a side has fewer, the farthest.
        near, far = (np.take_along_axis(logs, np.minimum(at, m - 2), axis=2) for at in places)
        wider = (far - near)[..., 0].T
        return [mean_where(wider, side) for side in (membership, ~membership)]

    return measure


def wider_in_line(points: Floats) -> Wider:
    """The same where one number is seen: neighbours are then next to each other once sorted.

    The time grows with m·k, not with m².
    """
    order = np.argsort(points[..., 0], axis=0)
    values = np.take_along_axis(points[..., 0], order, axis=0)

    def measure(membership: Bools, k: Codes) -> list[Floats]:
        sides = np.take_along_axis(membership, order, axis=0)
        found = [np.empty(len(k)), np.empty(len(k))]
        for number in np.unique(k):
            chosen = k == number
            for place, mean in enumerate(_in_line(values[:, chosen], sides[:, chosen], number)):
                found[place][chosen] = mean
        return found

    return measure


def _in_line(values: Floats, sides: Bools, k: int) -> list[Floats]:
    """What ``wider_anywhere`` gives, for sorted values (m, c), the side of each, and one k."""
    c = values.shape[1]
    ranks = [np.cumsum(side, axis=0, dtype=np.intp) for side in (sides, ~sides)]
    lines = [_packed(values, *one, k) for one in zip((sides, ~sides), ranks, strict=True)]
    means = []
    for mine, side in enumerate((sides, ~sides)):
        own, count = lines[mine], ranks[mine][-1]
        most = int(count.max())
        centre = own[k : k + most]
        near = _kth_distance(centre, [own[at : at + most] for at in range(2 * k + 1) if at != k])
        # How many of the other side are below each of this one, as a place in its flat line.
        row, column = np.nonzero(side)
        below = np.zeros((most, c), dtype=np.intp)
        below[ranks[mine][row, column] - 1, column] = ranks[1 - mine][row, column]
        flat, place = np.ravel(lines[1 - mine]), below * c + np.arange(c)
        far = _kth_distance(centre, [np.take(flat, place + at * c) for at in range(2 * k)])
        there = np.arange(most)[:, None] < count
        logs = np.log(np.where(there, np.maximum(far, TINY) / np.maximum(near, TINY), 1.0))
        means.append(logs.sum(axis=0) / np.maximum(count, 1))
    return means


def _packed(values: Floats, side: Bools, rank: Codes, k: int) -> Floats:
    """The values of one side alone, from row k on; before and after them it is far."""
    line = np.full((rank[-1].max() + 2 * k + 1, values.shape[1]), FAR)
    line[:k] = -FAR
    row, column = np.nonzero(side)
    line[rank[row, column] + k - 1, column] = values[row, column]
    return line


def _kth_distance(centre: Floats, around: Sequence[Floats]) -> Floats:
    """How far the k-th nearest is, of the k next below and the k next above, in that order.

    Some number of the k nearest is below, and the others above: the distance is the least, over
    that number, of the larger of both reaches.
    """
    k = len(around) // 2
    found = np.full(centre.shape, 2 * FAR)
    for below in range(k + 1):
        reach = np.maximum(centre - around[k - below], around[2 * k - 1 - below] - centre)
        np.minimum(found, reach, out=found)
    return found


def mean_where(values: Floats, side: Bools) -> Floats:
    """The mean over the models of a side, (c,); 0 where there is none."""
    count = np.maximum(np.count_nonzero(side, axis=0), 1)
    return np.asarray(np.where(side, values, 0.0).sum(axis=0) / count)
