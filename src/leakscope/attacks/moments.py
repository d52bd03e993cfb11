"""Mean and spread of what the models with a record show of it, and the models without it.

Shapes: m models, n records, q numbers per record and model. Work goes over the records in parts,
so that a stack of files is never held as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError, NotApplicableError
from leakscope.protocols import Bools, Floats, Stack

# So many numbers are read at once (32 MB), and so many are worked on at once in a core's cache.
READ = 2**22
NEAR = 2**15


@dataclass(frozen=True, eq=False)
class Moments:
    """One side of each record: how many models (n,), their mean and squared deviations (n, q)."""

    count: NDArray[np.intp]
    mean: Floats
    squares: Floats


def moments(
    scores: Stack,
    membership: Bools,
    sides: Sequence[bool] = (True, False),
    *,
    spread: bool = True,
    view: Callable[[Floats], Floats] = np.asarray,
) -> list[Moments]:
    """The moments of scores (m, n, q) over the models with each record (True), and without (False).

    Without spread the squared deviations are left at 0. view: what is done to numbers first.
    """
    m, n, q = scores.shape
    inside = membership.sum(axis=0)
    found = [
        Moments(inside if side else m - inside, np.zeros((n, q)), np.zeros((n, q)))
        for side in sides
    ]
    for read in slices(n, max(READ // (m * q), 1)):
        block = _numbers(scores, read)
        for near in slices(block.shape[1], max(NEAR // (m * q), 1)):
            part = slice(read.start + near.start, read.start + near.stop)
            few = view(block[:, near].reshape(m, -1))
            with np.errstate(invalid="ignore", over="ignore"):
                # From the first model's numbers: where all agree, deviations are exactly 0.
                centred = few - few[0]
            chosen = np.repeat(membership[:, part], q, axis=1)
            for side, one in zip(sides, found, strict=True):
                weight = (chosen if side else ~chosen).astype(np.float64)
                mean, squares = _weighed(centred, weight, np.repeat(one.count[part], q), spread)
                if not np.isfinite(mean).all():
                    raise _broken(few, part.start, q)
                one.mean[part] = (few[0] + mean).reshape(-1, q)
                one.squares[part] = squares.reshape(-1, q)
    return found


def _weighed(
    centred: Floats, weight: Floats, count: NDArray[np.intp], spread: bool
) -> tuple[Floats, Floats]:
    """The mean and the squared deviations of each column where the weight is 1, two (p,).

    A number that is not finite spoils the mean of its column, whatever its weight.
    """
    m = len(centred)
    mean = np.einsum("mp,mp->p", weight, centred) / np.maximum(count, 1)
    if not spread:
        return mean, np.zeros_like(mean)
    deviation = centred - mean
    deviation *= weight
    squares = np.einsum("mp,mp->p", deviation, deviation)
    # The rounding of a mean of equal numbers is no spread.
    squares[squares <= m * (m * np.finfo(float).eps * mean) ** 2] = 0.0
    return mean, squares


def slices(n: int, size: int) -> Iterator[slice]:
    """0 … n in parts of this size."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _numbers(scores: Stack, part: slice) -> Floats:
    try:
        return np.asarray(scores[:, part], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"The scores of the shadow models must be numbers: {error}") from error


def _broken(few: Floats, start: int, q: int) -> InputError:
    model, place = np.unravel_index(np.argmin(np.isfinite(few)), few.shape)
    return InputError(
        f"The scores of the shadow models must be finite, and that of model {model} for record "
        f"{start + place // q} (counting from 0) is not; clip it, or train that model again"
    )


def checked(
    scores: ArrayLike | Stack, membership: ArrayLike, target: ArrayLike
) -> tuple[Stack, Bools, Floats]:
    """Scores (m, n, q), membership (m, n) and the target's (n, q), or what is wrong with them.

    What has a shape but is no array (it has no ``ndim``) is a stack, and read in parts.
    """
    stacked = hasattr(scores, "shape") and not hasattr(scores, "ndim")
    stack: Stack = cast(Stack, scores) if stacked else np.asarray(scores)
    if len(stack.shape) not in (2, 3) or 0 in stack.shape:
        raise InputError(
            f"The scores of the shadow models must have the shape (models, records) or (models, "
            f"records, queries), got {tuple(stack.shape)}"
        )
    if len(stack.shape) == 2:
        stack = _Single(stack)
    m, n, q = stack.shape
    inside = np.asarray(membership)
    if inside.dtype != np.bool_:
        raise InputError(
            f"The membership must be true or false for each model and record, got {inside.dtype}: "
            "compare it with the value that means true"
        )
    if inside.shape != (m, n):
        raise InputError(
            f"The membership must have the shape {(m, n)} of the scores, got {inside.shape}"
        )
    return stack, inside, _target(target, n, q)


def _target(target: ArrayLike, n: int, q: int) -> Floats:
    values = np.asarray(target)
    if values.shape not in {(n, q), *({(n,)} if q == 1 else ())}:
        raise InputError(
            f"The target's scores must have the shape {(n,) if q == 1 else (n, q)} of the shadow "
            f"models' scores, got {values.shape}"
        )
    if values.dtype.kind not in "fiub":
        raise InputError(f"The target's scores must be numbers, got {values.dtype}")
    broken = ~np.isfinite(values.reshape(n, q)).all(axis=1)
    if broken.any():
        raise InputError(
            f"The target's scores must be finite, and those of {broken.sum()} records are not, the "
            f"first of record {int(np.argmax(broken))} (counting from 0); clip or drop them"
        )
    return values.reshape(n, q).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Single:
    """Scores (m, n) as a stack of one number per record and model."""

    scores: Stack

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.scores.shape, 1)

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return np.asarray(self.scores[index])[..., None]


def require(membership: Bools, least: int, *, both: bool) -> None:
    """Refuse, unless each record has so many models without it and, if asked, with it."""
    m, n = membership.shape
    inside = membership.sum(axis=0)
    for side, count in (("without", m - inside), ("with", inside))[: 1 + both]:
        lacking = int((count < least).sum())
        if lacking:
            raise NotApplicableError(
                f"Of {n} records, {lacking} have fewer than {least} shadow models {side} them; "
                "train more shadow models"
            )
