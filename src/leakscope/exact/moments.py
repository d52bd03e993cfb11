"""Means and covariances of the released models with and without each record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.errors import InputError
from leakscope.exact.bases import Bases, Completer
from leakscope.options import magnitude
from leakscope.protocols import Bools, Floats

# Beyond this a variance is no number any more.
LARGEST = 1e100


@dataclass(frozen=True)
class Release:
    """What leaves of a solution: rounded to multiples of ``grid``, then with Gaussian noise.

    Noise of deviation ``noise`` adds its variance to each coordinate. So does a place within the
    cell of the grid, uniform: whoever has it can round it away again, so nothing is revealed or
    hidden by adding it, and what is left of a coarse grid still has a density to compare.
    """

    noise: float
    grid: float | None

    def __post_init__(self) -> None:
        magnitude("noise", self.noise)
        if self.grid is not None:
            magnitude("grid", self.grid, above=0)
        if max(self.noise, self.grid or 0) > LARGEST:
            raise InputError(
                f"The options noise and grid must be at most {LARGEST:g}, got {self.noise!r} and "
                f"{self.grid!r}"
            )

    @property
    def variance(self) -> float:
        """What is added to the variance of each coordinate."""
        return self.noise**2 + (0.0 if self.grid is None else self.grid**2 / 12)

    def rounded(self, theta: Floats) -> Floats:
        """The solutions as they are released, before noise; in place."""
        if self.grid is not None:
            theta /= self.grid
            np.rint(theta, out=theta)
            theta *= self.grid
        return theta


@dataclass(frozen=True)
class Sums:
    """Over the draws in each of G groups that leave a record out, for r records.

    count (r, G); first (r, G, p) and second (r, G, p, p): sums of the centred solutions and of
    their products.
    """

    count: Floats
    first: Floats
    second: Floats

    def gaussians(self, variance: float) -> tuple[Floats, Floats]:
        """Means (r, 1 + G, p) and covariances (r, 1 + G, p, p): all groups, then all but each."""
        count, first, second = (_all_and_all_but_one(sums) for sums in self._fields())
        mean = first / count[..., None]
        scatter = second - first[..., :, None] * mean[..., None, :]
        covariance = scatter / (count - 1)[..., None, None]
        return mean, covariance + variance * np.eye(first.shape[-1])

    def _fields(self) -> tuple[Floats, Floats, Floats]:
        return self.count, self.first, self.second


def _all_and_all_but_one(sums: Floats) -> Floats:
    total = sums.sum(axis=1, keepdims=True)
    return np.concatenate([total, total - sums], axis=1)


@dataclass(frozen=True)
class Accumulator:
    """The bases by groups of draws, ready to be summed for any records."""

    release: Release
    groups: tuple[slice, ...]
    completers: tuple[Completer, ...]
    centre: Floats
    without: Floats

    @classmethod
    def of(cls, bases: Bases, groups: tuple[slice, ...], release: Release) -> Accumulator:
        """For these bases; ``without`` (M, p + p²) holds what is summed of the models without."""
        released = release.rounded(bases.without.copy())
        centre = released.mean(axis=0)
        released -= centre
        products = (released[:, :, None] * released[:, None, :]).reshape(len(released), -1)
        return cls(
            release=release,
            groups=groups,
            completers=tuple(Completer.of(bases, group) for group in groups),
            centre=centre,
            without=np.hstack([released, products]),
        )

    def sums(self, X: Floats, y: Floats, kept: Bools) -> tuple[Sums, Sums]:
        """With and without each of the records X (r, p), y (r,).

        kept (r, M): the draws that leave the record out, the only ones that count for it.
        """
        r, p = X.shape
        shape = (r, len(self.groups))
        count = np.empty(shape)
        first, second = np.empty((2, *shape, p)), np.empty((2, *shape, p, p))
        for g, (group, completer) in enumerate(zip(self.groups, self.completers, strict=True)):
            weights = kept[:, group].astype(np.float64)
            count[:, g] = weights.sum(axis=1)
            theta = self.release.rounded(completer.complete(X, y))
            theta -= self.centre[:, None]
            theta *= weights[:, None]
            first[0, :, g] = theta.sum(axis=2)
            second[0, :, g] = theta @ np.swapaxes(theta, 1, 2)
            summed = weights @ self.without[group]
            first[1, :, g] = summed[:, :p]
            second[1, :, g] = summed[:, p:].reshape(r, p, p)
        return Sums(count, first[0], second[0]), Sums(count, first[1], second[1])
