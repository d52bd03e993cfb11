"""The three regressions of which every leave-one-out model is found, each as its loss of logits.

A family has C linear outputs per record and K free ones: logits (C,) = basis (C, K) · free (K,).
Binomial and gaussian have one of each. Adding a number to all logits of a multinomial model changes
nothing, so that its free outputs are the C − 1 coordinates in an orthonormal basis of the logits
that sum to zero: there the penalty is the same sum of squares and the optimum is unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from leakscope.protocols import Floats

Singles = NDArray[np.float32]
# Changes of logits up to which remainders keep most of the digits of single precision.
EXPANDED = 1.0
FamilyName = Literal["binomial", "multinomial", "gaussian"]
FAMILIES: tuple[FamilyName, ...] = ("binomial", "multinomial", "gaussian")


class Family(Protocol):
    """The loss of one record as a function of its logits.

    basis (C, K): see above. flat: the second derivative of the loss, along any free output, at
    logits of zero, where it is largest. Targets: class numbers, or the numbers themselves.
    """

    @property
    def name(self) -> FamilyName:
        """As the user calls it."""
        ...

    @property
    def basis(self) -> Floats:
        """(C, K)."""
        ...

    @property
    def flat(self) -> float:
        """The curvature of the loss at logits of zero."""
        ...

    @property
    def unit(self) -> float:
        """In how many logits changes are counted where remainders are asked for."""
        ...

    def losses(self, logits: Floats, targets: NDArray[Any]) -> Floats:
        """The loss of b records, (b,), from their logits (b, C)."""
        ...

    def residuals(self, logits: Floats, targets: NDArray[Any], weights: Floats) -> Floats:
        """The derivative of the losses by the logits (b, C, m) of m models, written over them.

        Times weights (b,) of the records.
        """
        ...

    def curvatures(self, logits: Floats) -> Floats:
        """The second derivatives by the free outputs, (b, K, K), from logits (b, C)."""
        ...

    def expansion(self, logits: Floats) -> tuple[Singles, Singles]:
        """What is known of logits (n, C) before they change: (n, C, 1), and scales (n,)."""
        ...

    def remainders(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        """By how much the residuals change beyond first order, over the scales and the unit.

        known (b, C, 1): of the logits. changes (b, C, m): of these logits, in units, for m models;
        written over. spare: three arrays of that shape to work in. What is small is computed
        without differences of what is large, so that single precision keeps most of its digits.
        """
        ...

    def roughly(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        """The same, where a ten thousandth of it does not count, and time does."""
        ...


@dataclass(frozen=True)
class Binomial:
    """Log-loss of two classes; the logit is that of the second."""

    name: FamilyName = "binomial"
    flat: float = 0.25
    unit: float = 40.0**0.5

    @property
    def basis(self) -> Floats:
        return np.ones((1, 1))

    def losses(self, logits: Floats, targets: NDArray[Any]) -> Floats:
        signs = 1.0 - 2.0 * targets
        return np.logaddexp(0.0, signs * logits[:, 0])

    def residuals(self, logits: Floats, targets: NDArray[Any], weights: Floats) -> Floats:
        # −t σ(−t·logit) for t = ±1: a probability near 1 would be subtracted from 1 otherwise.
        signs = 2.0 * targets - 1.0
        if not targets.all():
            logits *= signs[:, None, None]
        with np.errstate(over="ignore"):  # e^800 is infinite, and 1/∞ the right answer
            np.exp(logits, out=logits)
        logits += 1.0
        return np.divide((-signs * weights)[:, None, None], logits, out=logits)

    def curvatures(self, logits: Floats) -> Floats:
        odds = np.exp(-np.abs(logits))
        return (odds / (1.0 + odds) ** 2)[..., None]

    def expansion(self, logits: Floats) -> tuple[Singles, Singles]:
        leanings = self.unit * np.tanh(logits / 2) / 2
        slopes = self.curvatures(logits)[:, 0, 0]
        return leanings.astype(np.float32)[..., None], -slopes.astype(np.float32)

    def remainders(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        # σ(z + u) − σ(z) = 2σ′ t / (1 + t tanh(z/2)) with t = tanh(u/2), and from its continued
        # fraction t = (u/2) N / (N + M) with N = 1680 + 40u², M = 140u² + u⁴, right to 1e-7 for
        # |u| < 1. The remainder is −σ′ u A / (N + A), A = M + N (u/2) tanh(z/2): nothing cancels.
        # In the unit u = √40 v, over 1600, N = 1.05 + v² and M = v² (3.5 + v²): one pass less.
        above, below, factor = spare
        with np.errstate(over="ignore", invalid="ignore"):  # a model so far away is not found here
            np.multiply(changes, changes, out=factor)
            np.add(factor, 1.05, out=below)
            np.add(factor, 3.5, out=above)
            above *= factor
            np.multiply(changes, known, out=factor)
            factor *= below
            above += factor
            below += above
            above /= below
            changes *= above
        return changes

    def roughly(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        # As above, with N = 12 and M = u²: right to u⁴/720 in A.
        above, below, _ = spare
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(changes, self.unit**2 / 12.0, out=above)
            above += known
            above *= changes
            np.add(above, 1.0, out=below)
            above /= below
            changes *= above
        return changes


@dataclass(frozen=True)
class Multinomial:
    """Log-loss of the softmax of C logits.

    Nowhere is a probability near 1 subtracted from 1: it is what the others sum to.
    """

    classes: int
    name: FamilyName = "multinomial"
    unit: float = 1.0

    @property
    def basis(self) -> Floats:
        rows: Floats = helmert(self.classes)
        return np.ascontiguousarray(rows.T)

    @property
    def flat(self) -> float:
        return 1.0 / self.classes

    def losses(self, logits: Floats, targets: NDArray[Any]) -> Floats:
        rows = np.arange(len(logits))
        others = logits - logits[rows, targets][:, None]
        others[rows, targets] = -np.inf
        losses: Floats = np.logaddexp(0.0, np.logaddexp.reduce(others, axis=1))
        return losses

    def residuals(self, logits: Floats, targets: NDArray[Any], weights: Floats) -> Floats:
        shares = _softmax(logits)
        shares *= weights[:, None, None]
        rows = np.arange(len(logits))
        shares[rows, targets] = 0.0
        shares[rows, targets] = -shares.sum(axis=1)
        return shares

    def curvatures(self, logits: Floats) -> Floats:
        shares = _softmax(logits.copy())
        spread = -shares[:, :, None] * shares[:, None]
        diagonal = np.arange(self.classes)
        spread[:, diagonal, diagonal] = 0.0
        spread[:, diagonal, diagonal] = -spread.sum(axis=2)
        free: Floats = self.basis.T @ spread @ self.basis
        return free

    def expansion(self, logits: Floats) -> tuple[Singles, Singles]:
        shares = _softmax(logits.copy()).astype(np.float32)[..., None]
        return shares, np.ones(len(logits), dtype=np.float32)

    def remainders(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        # Changes are taken relative to their mean over the shares p, which is then 0. With
        # q = e^u − 1 − u, p(z + u) − p(z) − p u = p (q − q̄ − u q̄) / (1 + q̄). The continued fraction
        # of the Binomial has q = u (h − M) / (N + M − h), h = N u/2, for |u| < 1: nothing cancels.
        shares = known
        above, below, factor = spare
        changes -= (shares * changes).sum(axis=1, keepdims=True)
        with np.errstate(over="ignore", invalid="ignore"):  # a model so far away is not found here
            np.multiply(changes, changes, out=factor)
            np.multiply(factor, 20.0, out=above)
            above += 840.0
            np.multiply(above, 2.0, out=below)
            above *= changes
            factor *= factor + 140.0
            above -= factor
            below -= above
            above /= below
            above *= changes
            far = np.abs(changes) > EXPANDED  # where there is nothing to lose
            above[far] = np.expm1(changes[far]) - changes[far]
            mean = (shares * above).sum(axis=1, keepdims=True)
            changes *= mean
            above -= mean
            above -= changes
            above /= 1.0 + mean
        return np.multiply(above, shares, out=changes)

    def roughly(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        return self.remainders(known, changes, spare)


def _softmax(logits: Floats) -> Floats:
    """Probabilities from logits (b, C, …), written over them."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


@dataclass(frozen=True)
class Gaussian:
    """Half of the squared error."""

    name: FamilyName = "gaussian"
    flat: float = 1.0
    unit: float = 1.0

    @property
    def basis(self) -> Floats:
        return np.ones((1, 1))

    def losses(self, logits: Floats, targets: NDArray[Any]) -> Floats:
        error: Floats = logits[:, 0] - targets
        return error**2 / 2

    def residuals(self, logits: Floats, targets: NDArray[Any], weights: Floats) -> Floats:
        logits -= targets[:, None, None]
        logits *= weights[:, None, None]
        return logits

    def curvatures(self, logits: Floats) -> Floats:
        return np.ones((len(logits), 1, 1))

    def expansion(self, logits: Floats) -> tuple[Singles, Singles]:
        return np.zeros((*logits.shape, 1), np.float32), np.zeros(len(logits), np.float32)

    def remainders(self, known: Singles, changes: Singles, spare: Sequence[Singles]) -> Singles:
        changes[...] = 0.0
        return changes

    roughly = remainders
