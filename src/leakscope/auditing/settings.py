"""What an audit is asked for, apart from the model and the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from leakscope.errors import InputError
from leakscope.protocols import Attack


@dataclass(frozen=True)
class Settings:
    """What an audit is asked for, apart from the model and the records; each field is an option."""

    attacks: Sequence[str | Attack] | None = None
    channels: Sequence[str] | None = None
    limit: float = 0.1
    prior: float = 0.5
    randomized: bool = False
    delta: float = 1e-5
    max_overlap: float = 0.05
    seed: int = 0
    shadows: int = 0
    tail_limit: float = 5.0

    def check(self) -> None:
        """Refuse settings that make no sense."""
        for name in ("limit", "prior", "delta"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 < value < 1:
                raise InputError(f"The {name} is {value!r}; choose a number between 0 and 1")
        if not _is_number(self.max_overlap) or not 0 <= self.max_overlap <= 1:
            raise InputError(f"The max_overlap is {self.max_overlap!r}; choose a share from 0 to 1")
        if not _is_number(self.tail_limit) or not 1 < self.tail_limit <= 100:
            raise InputError(
                f"The tail_limit is {self.tail_limit!r}; choose a multiple of the false positive "
                "rate above 1 and at most 100, such as 5"
            )
        if not _is_number(self.shadows, Integral) or self.shadows < 0:
            raise InputError(
                f"The number of shadow models is {self.shadows!r}; choose a whole number, such as "
                "32, or 0 for none"
            )
        if not _is_number(self.seed, Integral) or not 0 <= self.seed < 2**32:
            raise InputError(f"The seed is {self.seed!r}; choose a whole number from 0 to 2³² − 1")

    def typed(self) -> str:
        """The settings that are not the defaults, and the seed, as they are typed."""
        changed = {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if getattr(self, option.name) != option.default
        }
        return typed(**changed | {"seed": None}) + f"seed={self.seed}"


def _is_number(value: Any, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def typed(**options: Any) -> str:
    """Options as they are typed, each followed by a comma; None is left out."""
    told = ""
    for name, value in options.items():
        if value is not None:
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            told += f"{name}={plain!r}, "
    return told
