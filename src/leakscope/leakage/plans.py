"""Which models are left out together, and memberships under which there is nothing to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.metrics.samples import Codes, model_splits
from leakscope.protocols import Bools

# Groups of models that are left out in turn: more cost time and gain little.
GROUPS = 20


@dataclass(frozen=True, eq=False)
class Design:
    """How membership was drawn, where the models are neither independent nor in exact pairs.

    Models with one number in ``together`` (m,) were dealt together: none of them is judged by what
    another has taught. ``draw`` deals the membership (m, n) anew in the same way, from a seed: what
    is measured then, with models that never saw those members, is what there is without leakage.
    """

    together: Codes
    draw: Callable[[int], Bools]


@dataclass(frozen=True, eq=False)
class Plan:
    """How models are left out, and who the members are where there is nothing to find.

    ``folds`` (m,); ``nulls`` are memberships (m, n), their models packed into bits. Without a
    design, models whose members are the same, or exactly the others, stay together, and a null
    gives every model the members of another, the same for all records: the sizes of training sets,
    the number of models with each record and pairs of complementary models are kept, and so is
    what records share by being seen in the same models.
    """

    folds: Codes
    nulls: tuple[NDArray[np.uint8], ...]

    @classmethod
    def draw(
        cls, membership: Bools, permutations: int, seed: int, design: Design | None = None
    ) -> Plan:
        """A plan for the membership (m, n); the same for the same seed."""
        if permutations < 1:
            raise InputError(f"A null needs at least one permutation, got {permutations!r}")
        rng = np.random.default_rng(seed)
        if design is None:
            clusters = model_splits(membership)
            if clusters.max() == 0:  # one split: the models alone can be told apart
                clusters = np.arange(len(membership))
        else:
            clusters = np.unique(design.together, return_inverse=True)[1]
        deal = rng.permutation(clusters.max() + 1)
        nulls = (
            membership[_shuffle(clusters, rng)]
            if design is None
            else design.draw(int(rng.integers(2**32)))
            for _ in range(permutations)
        )
        return cls(deal[clusters] % GROUPS, tuple(np.packbits(one, axis=0) for one in nulls))

    def null(self, number: int, part: slice) -> Bools:
        """The membership of a part of the records where there is nothing to find."""
        bits = np.unpackbits(self.nulls[number][:, part], axis=0, count=len(self.folds))
        return bits.astype(np.bool_)


def _shuffle(clusters: Codes, rng: np.random.Generator) -> Codes:
    """For each model the one whose members it gets (m,): clusters of one size change places."""
    places: dict[int, list[Codes]] = {}
    for cluster in range(int(clusters.max()) + 1):
        rows = np.flatnonzero(clusters == cluster)
        places.setdefault(len(rows), []).append(rows)
    shuffled = np.empty(len(clusters), dtype=np.intp)
    for rows_of_size in places.values():
        for rows, source in zip(rows_of_size, rng.permutation(len(rows_of_size)), strict=True):
            shuffled[rows] = rng.permutation(rows_of_size[source])
    return shuffled
