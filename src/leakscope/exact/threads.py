"""Threads over the parts of a task, with none inside: products then do not wait for one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")


def over_parts(
    work: Callable[[Part], Result], parts: Sequence[Part], workers: int | None = None
) -> Iterator[Result]:
    """The results of the work on each part, in order; workers: as many as cores by default."""
    _keep_memory()
    with single_products(), ThreadPoolExecutor(workers or cpu_count()) as pool:
        yield from pool.map(work, parts)


def single_products() -> AbstractContextManager[Any]:
    """Within this context a product of matrices takes one thread."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limit


@cache
def _keep_memory() -> None:
    """Let the allocator keep what arrays of up to some megabytes leave behind.

    glibc gives memory back to the system above a size that grows with the largest piece that it has
    seen freed, up to 32 MB. Until then, threads that make and drop arrays all the time have a
    thousand pages each to ask for again. This piece is never written to, so that it costs nothing;
    the process keeps up to twice as much from then on. Elsewhere it does nothing.
    """
    np.empty(31 * 2**20, dtype=np.uint8)


@cache
def _libraries() -> ThreadpoolController:
    """Those with threads of their own; to look for them takes longer than many a product."""
    return ThreadpoolController()
