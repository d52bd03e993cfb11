"""Many independent tasks of an experiment, a process for each core, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from joblib import cpu_count, delayed

from leakscope.papers.experiment import Setting
from leakscope.trials.backends import processes

T = TypeVar("T")


def each(tasks: Sequence[Callable[[], T]], setting: Setting, step: str) -> list[T]:
    """What each task gives, in their order; the same whatever the number of workers."""
    workers = min(setting.workers or cpu_count(), max(1, len(tasks)))
    setting.progress(step, 0, len(tasks))
    found = list[T]()
    # Arrays are sent as they are: torch wants those that may be written to.
    with processes(workers, return_as="generator", max_nbytes=None) as pool:
        for result in pool(delayed(_alone)(task) for task in tasks):
            found.append(result)
            setting.progress(step, len(found), len(tasks))
    return found


def _alone(task: Callable[[], T]) -> T:
    """The task in one thread of torch: several add in another order."""
    from leakscope.networks.seeding import repeatable

    with repeatable():
        return task()
