"""What a run tells while it lasts: how long it will take, and how many models are finished."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from leakscope.errors import ModelError, StoreError
from leakscope.protocols import Progress
from leakscope.trials.workers import Chunk, Job

# Seconds between two looks at what is finished, at least and at most; how often to look again once
# all should be.
LOOK, SELDOM, LATE = 0.5, 10.0, 60


class Watch:
    """Counts finished models by looking into the store, wherever the workers are."""

    def __init__(self, job: Job, chunks: Sequence[Chunk]) -> None:
        self._job = job
        self._unfinished = [
            (key, frozenset(names))
            for chunk in chunks
            for key, names in zip(chunk.keys, chunk.wanted, strict=True)
        ]

    def finished(self) -> int:
        """How many models of the whole design are finished."""
        store = self._job.store
        begun = store.begun()  # one look instead of one for every model that is still to come
        self._unfinished = [
            (key, names)
            for key, names in self._unfinished
            if key not in begun or not store.has(key, names)
        ]
        return self._job.models - len(self._unfinished)

    def wait_for_all(self) -> None:
        """Wait until all files are seen: a shared file system may show them late."""
        for _ in range(LATE):
            if self.finished() == self._job.models:
                return
            time.sleep(LOOK)
        raise StoreError(
            f"The workers have finished, and only {self.finished()} of {self._job.models} models "
            f"are in {str(self._job.store.folder)!r}; give a folder that all workers share"
        )

    @contextmanager
    def telling(self, doing: str, workers: int, progress: Progress) -> Iterator[None]:
        """Tell how many are finished until the context ends, and how long all will take.

        That is known as soon as one is. The longer a model takes, the rarer are the looks: on a
        shared file system each is a question to another machine.
        """
        models, before, begun = self._job.models, self.finished(), time.monotonic()
        missing, over = models - before, threading.Event()
        starting = f"{doing} {counted(missing, 'model')} with {counted(workers, 'worker')}"
        progress(starting, min(before, models - 1), models)

        def watch() -> None:
            step, pause = starting, LOOK
            while not over.wait(min(max(pause, LOOK), SELDOM)):
                done = self.finished()
                if done > before and step == starting:
                    # Those who have not finished one yet are about to.
                    rounds = max(done - before, workers) / workers
                    seconds = (time.monotonic() - begun) / rounds
                    step, pause = f"{doing} {estimate(seconds, missing, workers)}", seconds / 10
                progress(step, min(done, models - 1), models)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    @contextmanager
    def saying_what_is_kept(self, *, kept: bool, fresh: bool) -> Iterator[None]:
        """A run that is interrupted, or fails, says what is finished and how to go on from there.

        kept: whether in a folder that stays. fresh: whether the same call would train all again.
        """
        try:
            yield
        except KeyboardInterrupt:
            how = f"; run the same again{' without fresh (--fresh)' if fresh else ''}"
            how += " to go on from there"
            raise KeyboardInterrupt(f"Stopped: {self._told(kept)}{how if kept else ''}") from None
        except ModelError as error:
            if not self.finished():
                raise  # there is nothing to go on from
            raise ModelError(f"{error}; {self._told(kept)}") from error

    def _told(self, kept: bool) -> str:
        where = (
            f" and are kept in {str(self._job.store.folder)!r}" if kept else ", and none is kept"
        )
        return f"{self.finished()} of {self._job.models} models were finished{where}"


def estimate(seconds: float, models: int, workers: int) -> str:
    """How long these models will take, from what one takes."""
    rounds = -(-models // workers)
    return (
        f"{counted(models, 'model')}, {_time(seconds)} each with "
        f"{counted(workers, 'worker')}: about {_time(seconds * rounds)} in all"
    )


def counted(number: int, noun: str) -> str:
    """Such as 1 worker, 2 workers."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _time(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
