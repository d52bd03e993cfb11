"""What a worker does: train a chunk of models or fetch them, observe them, write both down."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from leakscope.errors import LeakscopeError, ModelError
from leakscope.models import Remembering
from leakscope.models.aligned import aligned
from leakscope.models.answers import first_line
from leakscope.protocols import Channel, Floats, Labels, Model, Recipe
from leakscope.records import Records
from leakscope.trials.packing import Packed, pack, unpack
from leakscope.trials.store import MODEL, Digests, Store

# A model that took so many seconds to train is written before it is observed, not after.
LONG = 10.0
# What numpy says of code that would change the records in place.
_IN_PLACE = "read-only"


@dataclass(frozen=True)
class Chunk:
    """Models that are trained together, (c,), and what is asked of each.

    numbers: their places in the design, from 0; roles (c, n); wanted: for each model the channels
    that are missing in the store, by the name of their file; none for one that is finished.
    """

    numbers: Sequence[int]
    keys: Sequence[str]
    seeds: Sequence[int]
    roles: NDArray[np.int8]
    wanted: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Job:
    """What is the same for every chunk of a run.

    channels: by the name of their file. classes: the columns of every model's probabilities.
    """

    recipe: Recipe
    channels: dict[str, Channel]
    classes: Labels | None
    store: Store
    models: int
    keep_models: bool

    def finished(self, chunk: Chunk) -> bool:
        """Whether nothing that is wanted of a chunk is missing in the store."""
        wanted = zip(chunk.keys, chunk.wanted, strict=True)
        return all(self.store.has(key, names) for key, names in wanted)


@dataclass(frozen=True)
class Finished:
    """What a worker tells of a chunk.

    unusable: the models whose file was there and could not be used. unkept: those that could not
    be written to a file.
    """

    unusable: tuple[int, ...] = ()
    unkept: tuple[int, ...] = ()


def work(job: Job, chunks: Sequence[Chunk], records: Records) -> list[Finished]:
    """Finish chunks one after another; each is written while the next is trained."""
    # Without groups and persons, on which a stored model must not depend: they have no part in its
    # key, so that an audit by other groups finds it.
    bare = replace(records, groups={}, unit=None)
    finished = []
    with _thread_pools(len(sys.modules)).limit(limits=1), ThreadPoolExecutor(1) as writer:
        for chunk in chunks:
            finished.append(_worked(job, chunk, records, bare, writer))
            if len(finished) > 1:  # no more than one waits to be written: models may be large
                finished[-2].written()
    return [one.written() for one in finished]


@dataclass(frozen=True)
class Writing:
    """A chunk on its way into the store: what to tell of it once it is there."""

    told: Finished = Finished()
    writing: tuple[Future[None], ...] = ()

    def written(self) -> Finished:
        """What to tell of it, or the error that stopped its writing."""
        for one in self.writing:
            one.result()
        return self.told


def _worked(
    job: Job, chunk: Chunk, records: Records, bare: Records, writer: ThreadPoolExecutor
) -> Writing:
    """Train and observe, or observe the models that are in the store.

    bare: the records as recipes see them.
    """
    # Another worker may have finished it already, and died before it could say so. The lists are
    # read once: to open a file may have to wait for the one that is being written.
    listed = [job.store.listed(key) for key in chunk.keys]
    asked = enumerate(zip(listed, chunk.wanted, strict=True))
    pending = [place for place, (there, names) in asked if not there.keys() >= set(names)]
    if not pending:
        return Writing()
    stored = [
        _fetched(job.store, chunk.keys[place]) if MODEL in listed[place] else None
        for place in pending
    ]
    models = [model for model in stored if model is not None]
    trained = len(models) < len(pending)
    started = time.monotonic()
    if trained:
        everyone = _trained(job, chunk, bare)
        models = [everyone[place] for place in pending]
    keep, long = trained and job.keep_models, time.monotonic() - started > LONG
    unusable = tuple(
        chunk.numbers[place]
        for place, model in zip(pending, stored, strict=True)
        if model is None and MODEL in listed[place]
    )
    writing, unkept = [], []
    for place, model in zip(pending, models, strict=True):
        key, number = chunk.keys[place], chunk.numbers[place]
        # Here and not by the writer: both would hold Python's lock, and wait for each other.
        packed = pack(model) if keep else None
        if keep and packed is None:
            unkept.append(number)
        if long:
            _keep(job.store, key, packed)
            packed = None
        try:
            seen = _observed(job, chunk, place, model, records)
        except ModelError:
            _keep(job.store, key, packed)  # it is trained all the same
            raise
        writing.append(writer.submit(_write, job.store, key, packed, seen))
    return Writing(Finished(unusable, tuple(unkept)), tuple(writing))


def _fetched(store: Store, key: str) -> Model | None:
    """A model from the store; None where it is not there as it was written."""
    packed = store.model(key)
    try:
        return None if packed is None else unpack(packed)
    except Exception:  # whatever a foreign class may raise; it is trained again
        return None


def _trained(job: Job, chunk: Chunk, records: Records) -> list[Model]:
    first, last = chunk.numbers[0], chunk.numbers[-1]
    which = f"Model {first}" if first == last else f"One of the models {first} to {last}"
    try:
        models = job.recipe.fit_many(records.protected(), chunk.roles, chunk.seeds)
    except Exception as error:
        hint = "; let the recipe work on a copy of the records" if _IN_PLACE in str(error) else ""
        raise ModelError(
            f"{which} of {job.models} (counting from 0, seed {chunk.seeds[0]}) could not be "
            f"trained: {_said(error)}{hint}"
        ) from error
    if len(models) != len(chunk.keys):
        raise ModelError(
            f"The recipe {job.recipe.name!r} made {len(models)} models of {len(chunk.keys)} rows "
            "of roles; let its fit_many give one for each"
        )
    return models


def _keep(store: Store, key: str, packed: Packed | None) -> None:
    """Write a packed model and list it, if there is one."""
    if packed is not None:
        store.finish(key, store.write_model(key, packed))


def _write(store: Store, key: str, packed: Packed | None, seen: Mapping[str, Floats]) -> None:
    """Write a packed model, if there is one, and what is seen of it; then list them."""
    written: Digests = {} if packed is None else store.write_model(key, packed)
    try:
        for name, values in seen.items():
            written |= store.write_observations(key, name, values)
    finally:
        store.finish(key, written)  # where the disk is full, the model at least


def _observed(
    job: Job, chunk: Chunk, place: int, model: Model, records: Records
) -> dict[str, Floats]:
    """What each channel that is wanted shows of a model, (n, w), by the name of its file."""
    seen = {}
    which = f"model {chunk.numbers[place]} of {job.models} (counting from 0, seed "
    which += f"{chunk.seeds[place]})"
    known: Model | None = None
    for name in chunk.wanted[place]:
        channel = job.channels[name]
        try:
            known = known or Remembering(aligned(model, job.classes))
            values = np.ascontiguousarray(channel.observe(known, records), dtype=np.float64)
        except Exception as error:
            raise ModelError(
                f"The {channel.name} channel cannot be observed on {which}: {_said(error)}"
            ) from error
        whole = getattr(channel, "scope", Channel.scope) == "model"
        rows = 1 if whole else len(records)
        if values.ndim != 2 or len(values) != rows or not np.isfinite(values).all():
            each = "the model" if whole else f"each of the {rows} records"
            raise ModelError(
                f"The {channel.name} channel shows numbers of shape {values.shape}, "
                f"{int((~np.isfinite(values)).sum())} not finite, of {which}; a finite row for "
                f"{each} is needed"
            )
        seen[name] = values
    return seen


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, LeakscopeError) else first_line(error)


@lru_cache(maxsize=1)
def _thread_pools(imported: int) -> ThreadpoolController:
    """The thread pools of this process: to look for them takes longer than to limit them.

    imported: how many modules there are; a new one may have brought a pool.
    """
    return ThreadpoolController()
