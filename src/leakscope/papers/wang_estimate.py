"""How long a comparison will take, from one epoch of each kind of training on a few records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from joblib import cpu_count

from leakscope.defenses.pruning import Pruning
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_setups import Pool, Setup, repetitions
from leakscope.protocols import Defense
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

# Members that an epoch is timed with; epochs of larger sets take longer in proportion.
TIMED = 256
# Seconds from which on a training is mostly its epochs, and how many each stage has otherwise.
LONG, MORE = 10.0, 5


def estimates(found: Sequence[Pool], kinds: Sequence[str], setting: Setting) -> list[str]:
    """A sentence for each set-up on how long its models take to train, told as progress too."""
    told = []
    for pool in found:
        hours = seconds_of(pool, kinds, setting) / 3600
        told.append(
            f"{pool.setup.name}: about {hours:,.1f} hours of training in all, from an epoch of "
            f"{TIMED} members of each kind; what is finished is kept, and a run that was stopped "
            "goes on there."
        )
        setting.progress(told[-1], 0, 0)
    return told


def seconds_of(pool: Pool, kinds: Sequence[str], setting: Setting) -> float:
    """How long all models of a comparison take to train on the cores that there are.

    Those of no defense, of half as many epochs, of each kind, and of two baselines for each: as
    many epochs as the defense has, and at most those of no defense.
    """
    setup = pool.setup
    few = _few(pool.records)
    plain = epoch_seconds(setup, (), few)
    total = plain * (setup.recipe.epochs + setup.recipe.epochs // 2)
    for kind in kinds:
        parts = setup.defense(kind)
        epochs = epochs_of(setup, parts)
        total += epoch_seconds(setup, parts, few) * epochs
        total += plain * ((epochs if epochs > setup.recipe.epochs else 0) + setup.recipe.epochs)
    members = setup.members[setting.scale] or len(pool.records) // 3
    models_at_once = min(setting.workers or cpu_count(), repetitions(setting))
    return total * members / (len(few) // 2) * repetitions(setting) / models_at_once


def epochs_of(setup: Setup, parts: Sequence[Defense]) -> int:
    """How many epochs a defended network is trained for."""
    pruned = [part for part in parts if isinstance(part, Pruning)]
    return setup.recipe.epochs + sum(len(part.rhos) * part.epochs + part.retrain for part in pruned)


def epoch_seconds(setup: Setup, parts: Sequence[Defense], records: Records) -> float:
    """How long an epoch of half of these records takes with these defenses, D′ the other half.

    A short training is mostly preparation, and the first of a process has torch to start: there it
    is what more epochs add that counts.
    """
    first, epochs = _trained(setup, parts, records, 1)
    if first > LONG:
        return first / epochs
    short, _ = _trained(setup, parts, records, 1)
    long, more = _trained(setup, parts, records, MORE)
    return max((long - short) / (more - epochs), long / more / MORE)


def _trained(
    setup: Setup, parts: Sequence[Defense], records: Records, length: int
) -> tuple[float, int]:
    """Seconds of a training whose stages have so many epochs each, and how many that are in all.

    By the processor, of which it takes one core: other work on the machine is not counted.
    """
    recipe, stages = replace(setup.recipe, epochs=length), 1
    for part in parts:
        short = part
        if isinstance(part, Pruning):
            short = replace(part, rhos=part.rhos[:1], epochs=length, retrain=length)
            stages += 2
        wrapped = short.wrap_recipe(recipe)
        assert isinstance(wrapped, TorchRecipe)  # all defenses of the paper are in training
        recipe = wrapped
    roles = np.where(np.arange(len(records)) % 2 == 0, 1, 2).astype(np.int8)
    started = time.process_time()
    recipe.fit_many(records, roles[None], [0])
    return time.process_time() - started, stages * length


def _few(records: Records) -> Records:
    """As many members as are timed, and as many others."""
    return records.take(np.arange(min(2 * TIMED, len(records) // 2 * 2)))
