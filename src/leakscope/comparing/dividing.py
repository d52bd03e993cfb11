"""Members, reference records D′ and evaluation non-members: three disjoint sets for each seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.evidence import Folds
from leakscope.options import whole_number
from leakscope.protocols import Bools
from leakscope.records import Records
from leakscope.records.checks import shown

MEMBER, REFERENCE = 1, 2

# Fewer different records, or persons, on a side cannot be divided further into halves and fifths.
FEWEST = 20

# Keeps these draws apart from whatever else is drawn from the same seed.
STREAM = 0x74686972


@dataclass(frozen=True, eq=False)
class Division:
    """Who is who for one seed: roles (n,), and which of the others are evaluated, (n,)."""

    roles: NDArray[np.int8]
    evaluated: Bools

    @property
    def asked(self) -> NDArray[np.intp]:
        """The positions of the records that attacks are asked about."""
        return np.flatnonzero((self.roles == MEMBER) | self.evaluated)


def divide(records: Records, members: int | None, seed: int, seeds: int) -> list[Division]:
    """A division for each seed, each the same for any number of them.

    records: in canonical order. members: how many each of the three sets has, by default a third
    of the records. Persons and equal records are kept together, so that with large ones the sets
    are only about equal.
    """
    blocks = records.blocks()
    size = len(records) // 3 if members is None else whole_number("members", members, 1)
    if 3 * size > len(records):
        raise InputError(
            f"Three disjoint sets of {size} records need {3 * size}, and there are "
            f"{len(records)}; ask for {len(records) // 3} members at most"
        )
    found = [_divided(blocks, max(size, 1), seed, number) for number in range(seeds)]
    for division in found:
        _check(records, blocks, division)
    return found


def _divided(blocks: NDArray[np.intp], size: int, seed: int, number: int) -> Division:
    stream = np.random.SeedSequence(seed, spawn_key=(STREAM, number))
    order = np.random.default_rng(stream).permutation(blocks.max() + 1)
    # A block belongs where its last record falls: whole, and drawn without a look at its size.
    last = np.cumsum(np.bincount(blocks)[order]) - 1
    side = np.empty(len(order), dtype=np.intp)
    side[order] = last // size
    place = side[blocks]
    roles = np.select([place == 0, place == 1], [MEMBER, REFERENCE]).astype(np.int8)
    return Division(roles, place == 2)


def _check(records: Records, blocks: NDArray[np.intp], division: Division) -> None:
    """Refuse sets that are too small or of one class, before anything is trained."""
    sets = {
        "members": division.roles == MEMBER,
        "reference records": division.roles == REFERENCE,
        "evaluation non-members": division.evaluated,
    }
    what = "different records" if records.unit is None else "persons"
    for name, chosen in sets.items():
        there = len(np.unique(blocks[chosen]))
        if there < FEWEST:
            raise InputError(
                f"The {name} are {there} {what}, and a comparison needs {FEWEST} on each of its "
                f"three sides; give {3 * FEWEST} or more"
            )
        if len(np.unique(records.y[chosen])) < 2:
            raise InputError(
                f"The {name} of one seed all have the label {shown(records.y[chosen][0])}; give "
                "more records, of two classes"
            )


@dataclass(frozen=True, eq=False)
class Seat:
    """What every model of one seed is judged on, whatever its defense.

    records (n): members and evaluation non-members, in canonical order; place (n,): the block of
    the whole pool that each belongs to; clusters (n,): rows that count together, None where each
    stands alone. reference: D′.
    """

    number: int
    division: Division
    records: Records
    membership: Bools
    blocks: NDArray[np.intp]
    place: NDArray[np.intp]
    folds: Folds
    members: Records
    reference: Records

    @classmethod
    def of(cls, pool: Records, division: Division, number: int, seed: int) -> Seat:
        """The seat of one division of the pool."""
        asked = division.asked
        records = pool.take(asked)
        membership = division.roles[asked] == MEMBER
        blocks = records.blocks()
        return cls(
            number,
            division,
            records,
            membership,
            blocks,
            pool.blocks()[asked],
            Folds.draw(blocks, membership, seed),
            pool.take(np.flatnonzero(division.roles == MEMBER)),
            pool.take(np.flatnonzero(division.roles == REFERENCE)),
        )

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """The blocks, where some record does not stand alone."""
        return self.blocks if self.blocks.max() + 1 < len(self.records) else None
