"""How much a packed file from a stranger may unpack to: a small one made to fill the memory is not.

Honest files of records and of models shrink to a twentieth, at best to a fiftieth of their size; a
bomb shrinks to a thousandth.
"""

from __future__ import annotations

import math
from typing import IO, Any

import numpy as np

# Up to this size a file may shrink as well as it can: it fits the memory of any machine.
LARGE = 2**30
# Beyond, this often its own size is the most that is unpacked.
SWELLS = 100


def most_unpacked(packed: int) -> int:
    """How many bytes may come out of a file of so many."""
    return max(LARGE, SWELLS * packed)


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """What an array of numpy's format says of itself, before any of it is read.

    A ValueError says that it says nothing.
    """
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(stream)
    try:
        shape, _, dtype = readers[version](stream)
    except ValueError:
        raise
    except Exception as error:  # numpy reads it as Python, which stumbles in ways of its own
        raise ValueError(f"its header is none: {type(error).__name__}") from error
    return shape, dtype


def array_size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """How many bytes such an array has."""
    return math.prod(shape) * dtype.itemsize
