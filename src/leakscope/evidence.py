"""Evidence: what one attack is given, and no more.

Membership in the target never reaches an attack as an array. What an attack declares that its
adversary knows comes through two doors: the average over the members (Yeom et al.), and
cross-fitting, where members of one half teach an attack that scores the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import NotApplicableError
from leakscope.protocols import Bools, Floats, Knowledge, Stack, Task


@dataclass(frozen=True, eq=False)
class Folds:
    """Which half, and which fifth, each record belongs to; units and equal records stay whole."""

    half: Bools
    calibration: Bools

    @classmethod
    def draw(cls, blocks: NDArray[np.intp], membership: Bools, seed: int) -> Folds:
        """Folds from the blocks of Records.blocks: the same however the records were sorted.

        Each side is dealt out by itself, so that few persons do not all end up in one fold, and in
        the same way whichever side it is, so that swapping the sides changes nothing.
        """
        rank = np.empty(len(blocks), dtype=np.intp)
        for side in (membership, ~membership):
            _, own = np.unique(blocks[side], return_inverse=True)
            deal = np.random.default_rng(seed).permutation(own.max(initial=-1) + 1)
            rank[side] = deal[own]
        return cls(half=rank % 2 == 0, calibration=rank % 5 == 0)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the adversary has: observations of n records in the target, and of m shadow models.

    observations (n, w); labels (n,): class numbers 0 … classes−1, or the target numbers of a
    regression; shadow_membership (m, n) and shadow_observations (m, n, w), m = 0 without shadows.
    """

    task: Task
    observations: Floats
    labels: NDArray[np.int64] | Floats
    classes: int
    folds: Folds
    seed: int
    knowledge: Knowledge = "none"
    shadow_membership: Bools = field(default_factory=lambda: np.zeros((0, 0), bool))
    shadow_observations: Stack = field(default_factory=lambda: np.zeros((0, 0, 0)))
    _membership: Bools | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.observations)

    def _known(self, needed: Knowledge) -> Bools:
        if self.knowledge != needed or self._membership is None:
            raise PermissionError(f"An attack must declare knowledge={needed!r} to use it")
        return self._membership

    def average_training_loss(self) -> float:
        """The mean loss of the members, for adversaries who know it; for the channel of losses.

        It takes no argument: the average of any other numbers would tell more than its name.
        """
        losses = self.observations[self._known("average training loss"), 0]
        # A mean is at least the smallest, but for rounding, which must not part losses that tie.
        return float(max(losses.mean(), losses.min()))

    def part(self, chosen: Bools) -> Evidence:
        """The chosen records alone, with no knowledge of membership."""
        shadows = len(self.shadow_membership) > 0
        return replace(
            self,
            observations=self.observations[chosen],
            labels=self.labels[chosen],
            folds=Folds(self.folds.half[chosen], self.folds.calibration[chosen]),
            knowledge="none",
            shadow_membership=self.shadow_membership[:, chosen]
            if shadows
            else self.shadow_membership,
            shadow_observations=self.shadow_observations[:, chosen]
            if shadows
            else self.shadow_observations,
            _membership=None,
        )

    def cross_fit(self, learn: Callable[[Evidence, Bools], Callable[[Evidence], Floats]]) -> Floats:
        """A number per record, (n,), each from what was learned on the other half only.

        learn(known, membership) fits on one half and returns a function of the other.
        """
        membership = self._known("members of the other half")
        if self.folds.half.all() or not self.folds.half.any():
            raise NotApplicableError(
                f"All {len(self)} records fell into one half, so that nothing is left to learn "
                "from; give more records"
            )
        numbers = np.empty(len(self))
        for half in (False, True):
            asked = self.folds.half == half
            learned = learn(self.part(~asked), membership[~asked])
            numbers[asked] = learned(self.part(asked))
        return numbers
