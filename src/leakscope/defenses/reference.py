"""The reference records D′ of a defense, those of role 2, and what they must not be.

Whoever is in D′ and a member as well, or among those that a model is judged on, makes a defense
look better than it is (Wang et al. 2020; the protocol in docs/papers.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.records import Records


def refuse_missing(roles: NDArray[np.int8], defense: object) -> None:
    """Refuse roles (m, n) of which a model has no reference record."""
    without = np.flatnonzero(~(roles == 2).any(axis=1))
    if len(without):
        raise InputError(
            f"The defense {str(defense)!r} needs reference records, those of role 2, for every "
            f"model, and model {without[0]} (counting from 0) has none; give some of those left "
            "out, which are not evaluated then, the role 2"
        )


def refuse_shared(records: Records, roles: NDArray[np.int8]) -> None:
    """Refuse roles (m, n) of which a reference record is a member too, or left out to be judged."""
    blocks = records.blocks()
    for row in roles:
        reference = np.isin(blocks, blocks[row == 2])
        for role, what in ((1, "a member"), (0, "left out for the evaluation")):
            shared = np.flatnonzero(reference & (row == role))
            if len(shared):
                raise InputError(
                    f"{len(shared)} of {(row == role).sum()} {records.name} of role {role}, such "
                    f"as row {shared[0]}, equal a reference record or are of the same person, who "
                    f"is then both in D′ and {what}; give all of them one role"
                )
