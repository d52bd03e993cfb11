"""The engine: a design in, the table of trials out; parallel, resumed, and the same every time.

What is in the store under its key is not trained again. Chunks depend on the design alone, each
model has a seed of its own, and each worker has one thread: one worker, two, or a cluster write
the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray

import leakscope
from leakscope.errors import InputError, ModelError, StoreError
from leakscope.protocols import Channel, Labels, Progress, Recipe, silent
from leakscope.recipes import as_recipe
from leakscope.recipes.fingerprint import fingerprint
from leakscope.records import Records
from leakscope.registry import lookup
from leakscope.temporary import TemporaryFolder
from leakscope.trials.backends import LostWorkersError, Pool, Where, check_backend, open_pool
from leakscope.trials.designs import model_seeds
from leakscope.trials.store import DONE, MODEL, SCHEMA, Store
from leakscope.trials.table import StoredStack, Trials
from leakscope.trials.watching import Watch, counted
from leakscope.trials.workers import Chunk, Finished, Job, work

_LOG = logging.getLogger(__name__)

ROLES = (0, 1, 2)

# In how many shares each worker is given its models.
SHARES = 8

KILLED = (
    "A worker was killed while it trained, most likely for want of memory; run the same again with "
    "fewer workers"
)


def run_trials(
    recipe: Recipe | Any,
    records: Records,
    roles: ArrayLike,
    channels: Sequence[Channel | str],
    *,
    seed: int = 0,
    classes: Labels | None = None,
    store: str | Path | None = None,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    fresh: bool = False,
    keep_models: bool = True,
    progress: Progress | None = None,
) -> Trials:
    """Train one model per row of roles (m, n), and keep what every channel shows of each record.

    recipe: a Recipe, an estimator, or a registered name. channels: channels, or their names.
    classes: the columns of the models' probabilities, by default the records' labels in order.
    store: a folder in which finished models are kept and looked for; without one they are kept as
    long as the result. workers: as many as there are cores by default. fresh: train again what is
    there. keep_models: keep the models too, so that another channel can observe them later.
    progress: called with what is being done, how many models are finished, and of how many.
    """
    check_backend(backend, workers, address)
    recipe, roles = as_recipe(recipe), _checked(records, roles)
    channels = _distinct(channels)
    keeper = None
    if store is None:
        keeper = _temporary_folder()
        store = keeper.folder
    home = Store(Path(store).absolute())  # workers elsewhere have another current folder
    seeds = model_seeds(seed, len(roles))
    if classes is None and records.y.dtype.kind != "f":
        classes = np.unique(records.y)
    named = {_file_of(channel, classes): channel for channel in channels}
    job = Job(recipe, named, classes, home, len(roles), keep_models)
    made_by = fingerprint(recipe)
    keys = _keys(recipe, made_by, records, roles, seeds)
    with home.leading():
        home.write_manifest(_manifest(job, made_by, records, roles, seeds, keys))
        chunks = _missing(job, keys, seeds, roles, fresh)
        watch = Watch(job, chunks)
        tell = progress or silent
        if watch.finished():
            _LOG.info("%d of %d models are in %s", watch.finished(), job.models, home.folder)
            found = f"found {watch.finished()} of {counted(job.models, 'model')} in {home.folder}"
            tell(found, watch.finished(), job.models)
        with watch.saying_what_is_kept(kept=keeper is None, fresh=fresh):
            _run(job, chunks, records, watch, tell, (backend, workers, address))
    observations = {
        channel.name: StoredStack([home.path(key, name) for key in keys], keeper)
        for name, channel in named.items()
    }
    return Trials(roles, observations, seeds, home.folder, keeper)


def _temporary_folder() -> TemporaryFolder:
    try:
        return TemporaryFolder()
    except OSError as error:
        raise StoreError(
            f"There can be no folder for shadow models in {tempfile.gettempdir()!r} "
            f"({error.strerror or error}); make room there, or name another folder in the "
            "environment variable TMPDIR"
        ) from error


def _checked(records: Records, given: ArrayLike) -> NDArray[np.int8]:
    """The roles as small numbers: the same design in another type is the same design."""
    roles = np.asarray(given)
    if roles.ndim != 2 or roles.shape[1] != len(records) or len(roles) == 0:
        raise InputError(
            f"The roles have the shape {roles.shape}; give a row per model and a column for each "
            f"of the {len(records)} records"
        )
    for row in roles:  # one at a time, or the check would take more memory than the roles
        unknown = row[~np.isin(row, ROLES)]
        if len(unknown):
            raise InputError(
                f"{unknown[0]} is no role; give 0 for a record that is left out, 1 for a member, "
                "2 for a reference"
            )
    empty = np.flatnonzero(~(roles == 1).any(axis=1))
    if len(empty):
        raise InputError(f"Model {empty[0]} (counting from 0) has no member; give it a record")
    return np.ascontiguousarray(roles, dtype=np.int8)


def _distinct(channels: Sequence[Channel | str]) -> list[Channel]:
    """The channels, where names stand for those registered under them."""
    found: list[Channel] = [
        lookup("channel", one).thing() if isinstance(one, str) else one for one in channels
    ]
    names = [channel.name for channel in found]
    if not names or len(set(names)) < len(names):
        raise InputError(f"The channels are {names}; give at least one, and each once")
    return found


def _file_of(channel: Channel, classes: Labels | None) -> str:
    """The name of a channel's file: another for other options, columns, and another release."""
    columns = None if classes is None else np.asarray(classes).tolist()
    facts = f"{leakscope.__version__} {fingerprint(channel)} {columns}"
    return f"{channel.name}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.npy"


def _keys(
    recipe: Recipe,
    made_by: str,
    records: Records,
    roles: NDArray[np.int8],
    seeds: Sequence[int],
) -> list[str]:
    """The key of each model, (m,): all that decides what it will be.

    A model that is trained together with others depends on them too, if only in its last bits.
    """
    made_of = [SCHEMA, made_by, records.fingerprint()]
    rows = [hashlib.sha256(row.tobytes()).hexdigest() for row in roles]
    keys = []
    for start in range(0, len(roles), recipe.together):
        chunk = slice(start, start + recipe.together)
        for place in range(len(rows[chunk])):
            parts = [*made_of, rows[chunk], list(seeds[chunk]), place]
            keys.append(hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32])
    return keys


def _manifest(
    job: Job,
    made_by: str,
    records: Records,
    roles: NDArray[np.int8],
    seeds: Sequence[int],
    keys: Sequence[str],
) -> dict[str, Any]:
    """What the models of this run are; no dates and no costs, so that it is the same every time."""
    sizes = (roles == 1).sum(axis=1).tolist()
    return {
        "schema": SCHEMA,
        "leakscope": leakscope.__version__,
        "recipe": {"name": job.recipe.name, "fingerprint": made_by},
        "records": {"number": len(records), "fingerprint": records.fingerprint()},
        "channels": {channel.name: name for name, channel in job.channels.items()},
        "models": [
            {"number": number, "key": key, "seed": seed, "members": size}
            for number, (key, seed, size) in enumerate(zip(keys, seeds, sizes, strict=True))
        ],
    }


def _missing(
    job: Job, keys: Sequence[str], seeds: Sequence[int], roles: NDArray[np.int8], fresh: bool
) -> list[Chunk]:
    """The chunks in which something is missing or damaged."""
    wanted = [_wanted(job, number, key, fresh) for number, key in enumerate(keys)]
    chunks = []
    for start in range(0, len(keys), job.recipe.together):
        part = slice(start, start + job.recipe.together)
        if any(wanted[part]):
            chunks.append(
                Chunk(range(len(keys))[part], keys[part], seeds[part], roles[part], wanted[part])
            )
    return chunks


def _wanted(job: Job, number: int, key: str, fresh: bool) -> list[str]:
    """The observations of one model that are not in the store as they were written."""
    store = job.store
    if fresh:
        store.unlist(key)
    elif store.spoiled(key):
        _say_damaged(job, number, DONE)
    listed = store.listed(key)
    damaged = [name for name in job.channels if name in listed and not store.sound(key, name)]
    if damaged:
        _say_damaged(job, number, ", ".join(damaged))
        store.unlist(key, damaged)
    return [name for name in job.channels if name not in listed or name in damaged]


def _say_damaged(job: Job, number: int, what: str) -> None:
    warnings.warn(
        f"What is stored of model {number} (counting from 0) in {str(job.store.folder)!r} is "
        f"damaged, or was not written by this user ({what}); it is made again",
        stacklevel=2,
    )


def _say_unkept(job: Job, finished: Sequence[Finished]) -> None:
    if unkept := [number for one in finished for number in one.unkept]:
        warnings.warn(
            f"Models of the recipe {job.recipe.name!r} cannot be written to a file (such as model "
            f"{unkept[0]}, counting from 0), so that another channel would have to train them "
            "again; define their class in a module",
            stacklevel=2,
        )


def _run(
    job: Job,
    chunks: Sequence[Chunk],
    records: Records,
    watch: Watch,
    progress: Progress,
    where: Where,
) -> None:
    """Work through all chunks, with other workers where some were lost, as long as that helps."""
    left, began = chunks, time.monotonic()
    missing = job.models - watch.finished()
    if missing:
        _LOG.info("training %d models of %s on %s", missing, job.recipe.name, where[0])
    while left:
        before = watch.finished()
        try:
            with open_pool(where, shared=[records], folder=job.store.folder) as pool:
                _work_through(job, left, records, watch, progress, pool)
            break
        except LostWorkersError as lost:
            if watch.finished() == before:
                raise ModelError(KILLED) from lost
            _say_lost(job.models - watch.finished())
            left = [chunk for chunk in chunks if not job.finished(chunk)]
    watch.wait_for_all()
    if missing:
        _LOG.info("trained %d models in %.1f s", missing, time.monotonic() - began)


def _say_lost(models: int) -> None:
    warnings.warn(
        f"A worker was killed, most likely for want of memory; others go on with the "
        f"{counted(models, 'model')} that {'is' if models == 1 else 'are'} not finished",
        stacklevel=2,
    )


def _work_through(
    job: Job,
    chunks: Sequence[Chunk],
    records: Records,
    watch: Watch,
    progress: Progress,
    pool: Pool,
) -> None:
    """Train and observe these chunks, and say what is worth saying of them."""
    call, width = pool
    stored = all(job.store.has(key, [MODEL]) for chunk in chunks for key in chunk.keys)
    with watch.telling("observing" if stored else "training", width, progress):
        # Several at a time, as long as all workers get their share: one is written while the next
        # is trained. One worker gets all.
        size = len(chunks) if width == 1 else max(1, len(chunks) // (SHARES * width))
        parts = [chunks[start : start + size] for start in range(0, len(chunks), size)]
        told: list[list[Finished]] = call(delayed(work)(job, part, records) for part in parts)
    finished = [one for part in told for one in part]
    for number in (number for one in finished for number in one.unusable):
        _say_damaged(job, number, MODEL)
    _say_unkept(job, finished)
