"""How much a packed file from a stranger may unpack to: a small one made to fill the memory is not.

Honest files of records and of models shrink to a twentieth, at best to a fiftieth of their size; a
bomb shrinks to a thousandth.
"""

from __future__ import annotations

# Up to this size a file may shrink as well as it can: it fits the memory of any machine.
LARGE = 2**30
# Beyond, this often its own size is the most that is unpacked.
SWELLS = 100


def most_unpacked(packed: int) -> int:
    """How many bytes may come out of a file of so many."""
    return max(LARGE, SWELLS * packed)
