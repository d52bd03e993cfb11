"""One erratum of a paper: what is printed, what is right, and an example that tells them apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Erratum:
    """A statement as printed and as it should read, both put to the same example.

    printed_value and right_value: what either says of the ``quantity`` in the example. truth: the
    quantity itself, found without either formula, by enumeration or numerical integration.
    relation: whether the statements give the quantity or bound it from above. tolerance: how far
    the truth may be from a statement that is right.
    """

    where: str
    quantity: str
    printed: str
    right: str
    example: str
    printed_value: float
    right_value: float
    truth: float
    relation: Literal["equal", "at most"] = "equal"
    tolerance: float = 1e-9

    @property
    def holds(self) -> bool:
        """Whether what is printed is true of the example."""
        return self._agrees(self.printed_value)

    @property
    def right_holds(self) -> bool:
        """Whether the correction is."""
        return self._agrees(self.right_value)

    def _agrees(self, value: float) -> bool:
        over = self.truth - value
        return over <= self.tolerance and (self.relation == "at most" or over >= -self.tolerance)

    def to_row(self, number: int) -> dict[str, Any]:
        """For JSON, under its number; what is not finite is null."""
        return {
            "erratum": number,
            "where": self.where,
            "quantity": self.quantity,
            "printed": self.printed,
            "right": self.right,
            "example": self.example,
            "relation": self.relation,
            "printed_value": _finite(self.printed_value),
            "right_value": _finite(self.right_value),
            "truth": _finite(self.truth),
            "tolerance": self.tolerance,
            "holds": self.holds,
            "right_holds": self.right_holds,
        }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
