"""How a module is asked about records, and what its answer is made to look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


def type_and_device(module: nn.Module) -> tuple[torch.dtype, torch.device | None]:
    """What features must be for a module, and where: as its first parameters or buffers."""
    kept = [*module.parameters(), *module.buffers()]
    of_type = next((one for one in kept if one.is_floating_point()), None)
    dtype = torch.get_default_dtype() if of_type is None else of_type.dtype
    return dtype, kept[0].device if kept else None


def as_inputs(module: nn.Module, X: NDArray[Any]) -> Tensor:
    """Features (n, …) as the module takes them: of its type, and on its device."""
    dtype, device = type_and_device(module)
    # A copy: a module may work in place, and the features belong to the records. torch takes no
    # array that is read backwards.
    return torch.tensor(np.ascontiguousarray(X), dtype=dtype, device=device)


def with_rows(answer: Tensor, n: int) -> Tensor:
    """An answer for n records with a row for each.

    A module that squeezes its answer drops the row of a single record too.
    """
    dropped = n == 1 and (answer.ndim == 0 or len(answer) != 1)
    return answer.unsqueeze(0) if dropped else answer
