"""Threads over the parts of a task, with none inside: products then do not wait for one another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")


class Each(Protocol):
    """Python's map, or one whose calls are made by several threads; results come in order."""

    def __call__(
        self, work: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> Iterator[Result]:
        """The results of the work on each part."""
        ...


@contextmanager
def threads(workers: int | None = None) -> Iterator[Each]:
    """A map by so many threads, of which this is one; as many as there are cores by default."""
    _keep_memory()
    helpers = (workers or cpu_count()) - 1
    if helpers == 0:
        yield map
        return
    pool = ThreadPoolExecutor(helpers)
    try:
        yield partial(_shared, pool)
    finally:  # whoever stops asking for results does not wait for those that none has begun
        pool.shutdown(cancel_futures=True)


def _shared(
    pool: ThreadPoolExecutor, work: Callable[[Part], Result], parts: Iterable[Part], /
) -> Iterator[Result]:
    """Map by the threads of a pool and this one, from when the first result is asked for.

    While the next result is not there, this thread does parts that none has begun, the last first,
    and waits for those that others are at. Of several errors, it depends on them which is raised.
    """
    waiting = list(parts)
    futures: dict[int, Future[Result]] = {
        place: pool.submit(work, part) for place, part in enumerate(waiting)
    }
    own: dict[int, Result] = {}
    try:
        for place in range(len(waiting)):
            for last in range(len(waiting) - 1, place - 1, -1):
                if futures[place].done():
                    break
                if futures[last].cancel() and last not in own:
                    own[last] = work(waiting[last])
            done = futures.pop(place)  # nor is the result held any longer
            yield own.pop(place) if place in own else done.result()
    finally:
        for future in futures.values():
            future.cancel()


def over_parts(
    work: Callable[[Part], Result], parts: Sequence[Part], workers: int | None = None
) -> Generator[Result, None, None]:
    """The results of the work on each part, in order; workers: as many as cores by default."""
    with single_products(), threads(workers) as each:
        yield from each(work, parts)


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
