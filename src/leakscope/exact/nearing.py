"""Steps in single precision that lead near the model without each record.

In terms of the change δ of the model of all, the gradient without record j is H_j δ, less the
gradient of its loss, and a remainder R(δ) of second order. So the first step δ₀ is exact but for
the remainder, and δ = δ₀ − H_j⁻¹ R(δ) is solved by repetition: each gradient is then the change of
the remainder, of which single precision knows enough for as long as it shrinks. Where the remainder
is so small that its rounding is below the tolerance, single precision leads all the way: what is
left to whoever asks is δ₀ − H_j⁻¹ R in double, for the R that was found.

The first time, R is taken for a square function: what is known of R(δ₀) then tells how it grows
along δ₀. Later two repetitions are mixed (Anderson 1965, with a memory of one): δ₀ − H_j⁻¹ R(δ) is
linear in R, and the mixture of the last two remainders is taken for which the gradients mixed alike
are smallest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.exact.curvatures import Curvatures, joined, taken
from leakscope.exact.families import Singles
from leakscope.exact.remainders import Remainders
from leakscope.protocols import Bools, Floats, Indices

_ROUNDS = 100
_SLOW = 0.7  # a column whose decrement shrinks less than this is left where it was
# A column leaves when so many times the decrement that is expected is below the tolerance: of the
# exact step, or of this one where none follows. A round here costs half of the exact one that it
# may save, and a mixed one shrinks more than those before: seen were 2.5 times what is expected.
_NEAR, _NEAR_MIXED = 20.0, 4.0
# The most that the first remainder is taken to move a model against its first step, and along it.
_AGAINST, _ALONG = 1.0, 0.25
# Of the largest remainder: what rounding leaves of it in 99 of 100 records of Adult and Hospital,
# below which the others are not looked for; and more than was seen of any record anywhere (8e-6, of
# several hundred made-up problems with outliers, rare classes and weights of all sizes).
_SINGLE, _SURELY = 1e-6, 1e-5
# Of a curvature up to which this is so: what rounding leaves where there is much of it counts more,
# by the root, where there is little. And of one whose inverse has too few digits in single
# precision: decrements would be next to nothing, and models be called found, that are far away.
_CONDITIONED, _CONDITION = 1e2, 1e5


@dataclass(frozen=True, eq=False)
class Neared:
    """What single precision knows of the models without each of m records.

    remainders (D, K, m): R, for which they are δ₀ − H_j⁻¹ R from the model of all. rates (m,): the
    largest factor by which a decrement shrank, 1 where none did. last (m,): the decrement of which
    the next will be such a factor, infinite where the rate is known without it. sure (m,): whether
    they are below the tolerance, but for the rounding of δ₀.
    """

    remainders: Singles
    rates: Floats
    last: Floats
    sure: Bools

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Neared:
        """Of as many models as such an array (D, K, m) has, nothing."""
        m = shape[2]
        nothing = np.zeros(shape, dtype=np.float32)
        return cls(nothing, np.ones(m), np.full(m, np.inf), np.zeros(m, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class _Landed:
    """What a round leaves to the next, each (D, K, m).

    moved: −H_j⁻¹ times the remainders; with them, and the gradients that led to them.
    """

    moved: Singles
    remainders: Singles
    gradients: Singles

    def of(self, columns: Indices) -> _Landed:
        return _Landed(*(taken(part, columns) for part in vars(self).values()))


def nearly(
    remainders: Remainders,
    curvatures: Curvatures[np.float32],
    first: tuple[Floats, Floats],
    records: Indices,
    tolerance: float,
    condition: float,
) -> Neared:
    """Lead near the models without each of m records, as long as single precision can.

    first: the changes of the first step (D, K, m), and their decrements (m,). condition: of the
    curvature of all. A column of which it cannot be sure, and that is near enough, is left to an
    exact step.
    """
    if condition > _CONDITION:
        return Neared.none(first[0].shape)
    surely = _SURELY / _SINGLE * max(1.0, condition / _CONDITIONED) ** 0.5
    start, last = first[0].astype(np.float32), first[1]
    rates, active, ended = np.ones(len(records)), np.arange(len(records)), []
    sure, reached = np.zeros(len(records), dtype=np.bool_), np.full(len(records), np.inf)
    moved, before, landed = np.zeros_like(start), np.zeros_like(start), None
    slowest = least = np.zeros(len(active))
    for _ in range(_ROUNDS):
        if len(active) == 0:
            break
        # The first is only to lead near, and no column is known by it.
        supposed, now = before, remainders.of(start + moved, records, roughly=landed is None)
        gradients = now - supposed
        steps, sizes = curvatures.steps(gradients)
        decrements = sizes.astype(np.float64)
        ratios = np.divide(decrements, last, out=np.ones(len(last)), where=last > 0)
        slowest, least = np.maximum(slowest, ratios), np.maximum(least, _SINGLE * decrements)
        going = decrements <= _SLOW * last
        rates[active[going]] = slowest[going]
        here = _Landed(moved - steps, now, gradients)
        known = surely * least <= tolerance  # no exact step follows
        expected = slowest * np.where(known, 1.0, slowest) * decrements
        if landed is None:
            growth = _growth(np.einsum("dkm,dkm->m", now, start), last)
            ahead, before = growth * here.moved, growth * now
            # The first remainder over the first step is no rate yet: the next decrement will tell.
            reached[active] = np.where(going & (decrements > 0), decrements, np.inf)
            near = (_NEAR * expected <= tolerance) & (~known | (decrements == 0))
        else:
            share = _share(decrements, last, np.einsum("dkm,dkm->m", landed.gradients, steps))
            ahead = here.moved + share * (landed.moved - here.moved)
            before = now + share * (landed.remainders - now)
            reached[active] = np.inf
            near = _NEAR_MIXED * expected <= tolerance
        sure[active] = going & known & near
        stays = going & ~near & (decrements > least)
        left, kept = np.flatnonzero(~stays), np.flatnonzero(stays)
        found = taken(before, left)
        if not going[left].all():
            found = np.where(going[left], found, taken(supposed, left))
        ended.append((active[left], found))
        active, records, last = active[kept], records[kept], decrements[kept]
        slowest, least = slowest[kept], least[kept]
        start, moved, before = taken(start, kept), taken(ahead, kept), taken(before, kept)
        landed, curvatures = here.of(kept), curvatures.of(kept)
    ended.append((active, before))
    return Neared(joined(ended), rates, reached, sure)


def _growth(along: Singles, first: Floats) -> Singles:
    """How many times its size the remainder R of the first step grows along that step, (m,).

    along (m,): R times the first step, which R is taken for a square function of; first (m,): the
    decrement of the first step. What is added to that step adds to R twice its share of it, which
    adds to what is added, and so on.
    """
    share = np.divide(-along, first**2, out=np.zeros(len(first)), where=first > 0)
    return (1.0 / (1.0 - 2.0 * np.clip(share, -_AGAINST, _ALONG))).astype(np.float32)


def _share(now: Floats, last: Floats, cross: Singles) -> Singles:
    """How much of the round before is mixed in, (m,): from squares of gradients by H_j⁻¹."""
    squares, both = now**2, cross.astype(np.float64)
    apart = squares - 2.0 * both + last**2
    share = np.divide(squares - both, apart, out=np.zeros(len(now)), where=apart > 0)
    return share.astype(np.float32)
