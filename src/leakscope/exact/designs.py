"""The rows of a regression, for sums over all records at many models at once.

Tables of categories, each of which has a feature of its own, are mostly zeros once the value that
is most common is subtracted from each feature. A product with such a matrix takes as many steps as
it has other numbers. What makes rows dense, centred features and coordinates in which the curvature
is simple, is a matrix of the features alone, which goes to the models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from leakscope.protocols import Floats, Indices

BLOCK = 2**20  # bytes of logits held at a time: they stay in the cache
ABREAST = 2**11  # bytes of them of one record: products of long and low blocks are slower
_FEWEST = 64  # columns that blocks are made for: sums of more rows would lose digits
_COMMON = 0.5  # the share of its most common value from which on a feature is mostly that
_LONG = 4  # records for each feature, fewer of which are not worth a product with the lead
_SAMPLE = 64  # records among which that value is looked for
# Records whose residuals are added up one after another: of more, rounding is more than that of
# products of dense matrices, which add up several at a time.
_IN_A_ROW = 256
_SPARSE = 0.2  # the share of other numbers up to which products are faster than with all

Number = TypeVar("Number", np.float32, np.float64)


class Design(Protocol[Number]):
    """Rows (n, D) by which models become logits, and by which residuals are summed."""

    def inward(self, models: NDArray[Number]) -> NDArray[Number]:
        """Models (D, C, m) as the products need them, (S, C, m)."""
        ...

    def spans(self, columns: int) -> list[slice]:
        """The records in blocks, for products with so many columns; the last is the longest."""
        ...

    def logits(
        self, rows: slice, models: NDArray[Number], room: NDArray[Number]
    ) -> NDArray[Number]:
        """Of one block of records, (b, c), from models (S, c), in the room given for them."""
        ...

    def gather(self, rows: slice, residuals: NDArray[Number], sums: NDArray[Number]) -> None:
        """Add the sums over a block of weighted rows times residuals (b, c) to others (S, c)."""
        ...

    def outward(self, sums: NDArray[Number]) -> NDArray[Number]:
        """Such sums (S, C, m) in the coordinates of the models, (D, C, m)."""
        ...


@dataclass(frozen=True, eq=False)
class Dense(Generic[Number]):
    """A design as it is: rows (n, D), and the same times the weight of each."""

    rows: NDArray[Number]
    weighted: NDArray[Number]

    def inward(self, models: NDArray[Number]) -> NDArray[Number]:
        return models

    def spans(self, columns: int) -> list[slice]:
        return spans(len(self.rows), BLOCK // self.rows.itemsize // max(_FEWEST, columns))

    def logits(
        self, rows: slice, models: NDArray[Number], room: NDArray[Number]
    ) -> NDArray[Number]:
        return np.matmul(self.rows[rows], models, out=room)

    def gather(self, rows: slice, residuals: NDArray[Number], sums: NDArray[Number]) -> None:
        sums += self.weighted[rows].T @ residuals

    def outward(self, sums: NDArray[Number]) -> NDArray[Number]:
        return sums


@dataclass(frozen=True, eq=False)
class Sparse(Generic[Number]):
    """A design that is a matrix (n, S) of mostly zeros times a dense one, lead (S, D).

    rows: most of these columns, sparse, and then the others (n, q); weighted: both times the weight
    of each row. lead is in double precision always: its rounding would be that of all records, and
    does not average out.
    """

    rows: tuple[csr_array, NDArray[Number]]
    weighted: tuple[csr_array, NDArray[Number]]
    lead: Floats
    _blocks: dict[tuple[int, int], tuple[csr_array, csc_array]] = field(
        default_factory=dict, init=False
    )

    def turned(self, turn: Floats) -> Sparse[Number]:
        """The same in coordinates that this matrix (D, D) leads back from."""
        return Sparse(self.rows, self.weighted, self.lead @ turn)

    def single(self, weights: Floats, unit: float) -> Sparse[np.float32]:
        """The same in single precision: rows over a unit, and rows times weights (n,)."""
        over = np.full(len(weights), 1.0 / unit)
        return Sparse(_single(self.rows, over), _single(self.rows, weights), self.lead)

    def squared(self, lengths: Floats) -> Floats:
        """The squares of all numbers times lengths (S,), summed for each row, (n,)."""
        zeros, others = self.rows
        split = zeros.shape[1]
        found: Floats = zeros.power(2) @ lengths[:split] + others**2 @ lengths[split:]
        return found

    def inward(self, models: NDArray[Number]) -> NDArray[Number]:
        return _led(self.lead, models)

    def spans(self, columns: int) -> list[slice]:
        n, size = len(self.rows[1]), self.rows[1].itemsize
        parts = -(-n // max(16, BLOCK // size // max(_FEWEST, columns)))
        return _divided(n, 1 << (parts - 1).bit_length())  # powers of two: few kinds of blocks

    def logits(
        self, rows: slice, models: NDArray[Number], room: NDArray[Number]
    ) -> NDArray[Number]:
        split = self.rows[0].shape[1]
        np.matmul(self.rows[1][rows], models[split:], out=room)
        room += self._block(rows)[0] @ models[:split]
        return room

    def gather(self, rows: slice, residuals: NDArray[Number], sums: NDArray[Number]) -> None:
        split = self.rows[0].shape[1]
        groups = self._block(rows)[1] @ residuals
        for group in groups.reshape(-1, split, groups.shape[1]):
            sums[:split] += group
        sums[split:] += self.weighted[1][rows].T @ residuals

    def outward(self, sums: NDArray[Number]) -> NDArray[Number]:
        return _led(self.lead.T, sums)

    def _block(self, rows: slice) -> tuple[csr_array, csc_array]:
        """These sparse rows, and the same weighted and transposed: to cut them out takes a while.

        In single precision, several sums (…, b) are made of many rows, to be added up later. Two
        threads may cut out the same at a time; they keep one of them.
        """
        place = rows.start, rows.stop
        if place not in self._blocks:
            self._blocks[place] = self.rows[0][rows], _gathering(self.weighted[0][rows])
        return self._blocks[place]


def _single(
    rows: tuple[csr_array, NDArray[Any]], weights: Floats
) -> tuple[csr_array, NDArray[np.float32]]:
    """Rows (n, S) times weights (n,), in single precision."""
    zeros, others = rows
    data = (zeros.data * np.repeat(weights, np.diff(zeros.indptr))).astype(np.float32)
    weighted = (weights[:, None] * others).astype(np.float32)
    return csr_array((data, zeros.indices, zeros.indptr), shape=zeros.shape), weighted


def _gathering(rows: csr_array) -> csc_array:
    """Rows (b, s), transposed; in single precision for groups of them one below another."""
    count, width = rows.shape
    size = _IN_A_ROW if rows.dtype == np.float32 else count
    group = np.repeat(np.arange(count, dtype=np.int32) // size, np.diff(rows.indptr))
    shape = (width * -(-count // size), count)
    return csc_array((rows.data, rows.indices + width * group, rows.indptr), shape=shape)


def factored(design: Floats) -> Sparse[np.float64] | None:
    """A design (n, D) whose last column is an intercept as one of mostly zeros and its lead.

    Rows may be mirrored, by an intercept of −1. None where too many numbers are unlike the others
    of their column, or rows are few. A number that more than half of a sample have is its median.
    """
    count, width = design.shape
    if count < _LONG * width:
        return None
    signs = design[:, -1:]
    sample = slice(None, None, max(1, count // _SAMPLE))
    some = np.sort(signs[sample] * design[sample], axis=0)
    base = some[len(some) // 2]
    mostly = np.count_nonzero(some == base, axis=0) >= _COMMON * len(some)
    mostly[-1] = False
    unlike = np.where(mostly, np.count_nonzero(some != base, axis=0), len(some)).sum()
    if unlike > 2 * _SPARSE * some.size:
        return None  # as all of them will tell, which takes longer
    shifted = design[:, mostly] - signs * base[mostly]
    kept = shifted != 0
    others = np.ascontiguousarray(design[:, ~mostly])
    if np.count_nonzero(kept) + others.size > _SPARSE * design.size:
        return None
    places = (np.flatnonzero(kept) % shifted.shape[1]).astype(np.int32)
    ends = np.append(0, np.cumsum(np.count_nonzero(kept, axis=1))).astype(np.int32)
    lead = np.eye(width)
    lead[-1, mostly] = base[mostly]
    rows = csr_array((shifted[kept], places, ends), shape=shifted.shape), others
    return Sparse(rows, rows, np.concatenate([lead[mostly], lead[~mostly]]))


def sums(
    design: Design[Number],
    models: NDArray[Number],
    change: Callable[..., NDArray[Number]],
    without: Indices | None = None,
    spare: int = 0,
) -> NDArray[Number]:
    """Sums over the records of their rows times what becomes of their logits, (D, C, m).

    The logits at models (D, C, m) are found in blocks (b, C, m) that stay in the cache; change is
    called with a slice of records, their block, which it may write over, and so many spare ones.
    without (m,): a record for each model that is not in its sum.
    """
    inward = design.inward(models)
    outputs, m = models.shape[1:]
    total = np.empty_like(inward)
    for columns in spans(m, ABREAST // models.itemsize // outputs):
        some: NDArray[Number] = inward[..., columns]
        flat = np.ascontiguousarray(some.reshape(len(some), -1))
        part = np.zeros_like(flat)
        blocks = design.spans(flat.shape[1])
        # Room for all blocks: to ask the system for some each time takes as long as the work.
        longest = blocks[-1].stop - blocks[-1].start
        room = np.empty((1 + spare, longest, flat.shape[1]), dtype=models.dtype)
        for rows in blocks:
            first, *others = (one[: rows.stop - rows.start] for one in room)
            shape = (len(first), *some.shape[1:])
            logits = design.logits(rows, flat, first).reshape(shape)
            block = change(rows, logits, *(one.reshape(shape) for one in others))
            if without is not None:
                own = without[columns] - rows.start
                column = np.flatnonzero((own >= 0) & (own < len(block)))
                block[own[column], :, column] = 0.0
            design.gather(rows, block.reshape(len(block), -1), part)
        total[..., columns] = part.reshape(some.shape)
    return design.outward(total)


def spans(count: int, most: int) -> list[slice]:
    """Slices of about the same length, the last the longest, that cover so many things.

    16 may be together always.
    """
    return _divided(count, max(1, -(-count // max(16, most))))


def _divided(count: int, parts: int) -> list[slice]:
    return [slice(count * i // parts, count * (i + 1) // parts) for i in range(parts)]


def _led(lead: Floats, models: NDArray[Number]) -> NDArray[Number]:
    """A matrix in double precision times models (D, C, m), in the precision of these."""
    flat = lead @ models.reshape(len(models), -1)
    return flat.reshape(-1, *models.shape[1:]).astype(models.dtype, copy=False)
