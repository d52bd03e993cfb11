"""Negative controls: what must not happen in an audit that means something."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Control:
    """One control: passed, failed, or (None) could not be run; a fatal failure voids the audit.

    assumption: what the verdict takes for granted where a fatal control could not be run.
    """

    name: str
    passed: bool | None
    fatal: bool
    detail: str
    assumption: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @property
    def voids(self) -> bool:
        """Whether the audit means nothing because of it."""
        return self.fatal and self.passed is False
