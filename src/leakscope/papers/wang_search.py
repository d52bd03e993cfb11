"""Algorithm 1 of Wang et al. (2020): of several prunings the one that gives an inference least.

The paper chooses among numbers of weights. Here it is how fast a network learns while it is pruned
and trained again that is chosen, at the ratio of the tables: that decides how closely what is left
fits the members. Gain and accuracy are measured between members and D′: on MNIST those of images
that no table has, on Location-30 those of the tables, see wang_grounds.py; no attack of a table has
a part in the choice. The candidates themselves were drawn up after a trial on other training images
of MNIST in which attacks were looked at too, see docs/papers.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from leakscope.comparing.dividing import MEMBER, REFERENCE
from leakscope.defenses.pruning import BudgetSearch, Candidate
from leakscope.papers.experiment import Experiment, Setting
from leakscope.papers.wang_comparing import NONE
from leakscope.papers.wang_grounds import TOLERANCE, Found, Ground, ground_of, search, together
from leakscope.papers.wang_setups import PAPER, SEARCHED, pools, setup_of
from leakscope.registry import register


@register("experiment", "wang-algorithm1", paper=f"{PAPER}, algorithm 1")
def least_gain(setting: Setting) -> Experiment:
    """The search for the pruning of least inference gain under a tolerance in accuracy."""
    there, missing = pools(setting, SEARCHED)
    grounds = [ground_of(pool, setting) for pool in there]
    done = search(grounds, setting)
    return Experiment(
        experiment="wang-algorithm1",
        paper=f"{PAPER}, algorithm 1",
        setup=setup_of(
            [ground.pool for ground in grounds],
            setting,
            gain="−log 4 + 2·JS, by histograms of the logit margins of members and of D′; means "
            "over seeds",
            tolerance=TOLERANCE,
            records={
                one.name: "those of the tables" if one.in_tables else "none of them is in a table"
                for one in grounds
            },
        ),
        rows=[row for one in done for row in _rows(one)],
        paper_rows=[
            {"claim": "of several numbers of weights the one of least gain is chosen",
             "source": "algorithm 1"},
        ],
        notes=[*(note for one in done for note in notes_on(one)), *missing],
    )  # fmt: skip


def _rows(done: Found) -> list[dict[str, Any]]:
    found = together(done.alone)
    return [_row(done.ground.name, one, found) for one in (found.baseline, *found.candidates)]


def _row(setup: str, one: Candidate, found: BudgetSearch) -> dict[str, Any]:
    plain = one.pruning is None
    return {
        "setup": setup,
        "defense": NONE if plain else str(one.pruning),
        "rate": None if one.pruning is None else one.pruning.rate,
        "retrain_rate": None if one.pruning is None else one.pruning.retrain_rate,
        "weights": one.weights,
        "gain": one.gain,
        "reference_accuracy": one.accuracy,
        "allowed": None if plain else one in found.allowed,
        "chosen": None if plain else one is found.chosen,
    }


def notes_on(done: Found) -> Iterator[str]:
    """What was chosen in a set-up, by how much, and how far other records choose the same."""
    name, found = done.ground.name, together(done.alone)
    yield (
        f"{name}: the undefended network has a gain of {_at(found.baseline)} on D′; −1.3863 is no "
        "gain."
    )
    yield f"{name}: {_choice(found)}"
    if found.chosen is not None:
        same = found.chosen.pruning == done.ground.pool.setup.pruning
        yield (
            f"{name}: the tables have {done.ground.pool.setup.pruning}, "
            f"{'which is that one' if same else 'which is another one'}."
        )
    if len(done.alone) > 1:
        yield f"{name}: {_by_seed(done.alone)}"
    if done.ground.shared:
        yield f"{name}: {_shared(done.ground)}"
        yield f"{name}: {_spared(done)}"


def _choice(found: BudgetSearch) -> str:
    """Which candidate is chosen, and whether another one would gain less."""
    chosen, least = found.chosen, min(found.candidates, key=lambda one: one.gain)
    if chosen is None:
        return (
            f"none of {len(found.candidates)} candidates is within {found.tolerance:g} of that "
            "accuracy, and none is chosen."
        )
    told = (
        f"{chosen.pruning} is chosen: a gain of {_at(chosen)}, the least of {len(found.allowed)} "
        f"candidates that are accurate enough, of {len(found.candidates)}"
    )
    if least.gain < chosen.gain:
        told += (
            f"; {least.pruning} would gain less ({_number(least.gain)}), at an accuracy of "
            f"{least.accuracy:.3f}, which is too low"
        )
    return f"{told}."


def _by_seed(alone: Sequence[BudgetSearch]) -> str:
    """What each repetition would choose by itself."""
    chosen = [NONE if one.chosen is None else str(one.chosen.pruning) for one in alone]
    numbered = sorted(range(len(chosen)), key=lambda number: chosen[number])
    told = []
    for what, group in groupby(numbered, key=lambda number: chosen[number]):
        numbers = [str(number) for number in group]
        told.append(f"{what} by seed {', '.join(numbers)}")
    return f"by one seed alone would be chosen: {'; '.join(told)}."


def _shared(ground: Ground) -> str:
    """How much of D′ is in the evaluation of another repetition."""
    reference = sum(int((one.roles == REFERENCE).sum()) for one in ground.divisions)
    share = 1 - sum(ground.spared_as(REFERENCE)) / reference
    return (
        "members and D′ are those of the tables. No network is judged here on the non-members that "
        f"it is evaluated on there, but {share:.0%} of D′ are among those of another seed."
    )


def _spared(done: Found) -> str:
    """What is chosen by the same models without the non-members of the evaluation of any seed."""
    ground = done.ground
    left = int(ground.spared.sum())
    if not done.spared:
        return (
            f"only {left} records are non-members of the evaluation in no seed, too few to choose "
            "by them alone."
        )
    found = together(done.spared)
    members, reference = (np.mean(ground.spared_as(role)) for role in (MEMBER, REFERENCE))
    told = (
        f"by the {left} of {len(ground.spared)} records that are non-members of the evaluation in "
        f"no seed (in the mean {members:.0f} members and {reference:.0f} of D′), "
    )
    if found.chosen is None:
        return f"{told}none is chosen; the undefended network has a gain of {_at(found.baseline)}."
    first = together(done.alone).chosen
    same = first is not None and first.pruning == found.chosen.pruning
    return (
        f"{told}{'the same' if same else found.chosen.pruning} is chosen: a gain of "
        f"{_at(found.chosen)}, without a defense {_at(found.baseline)}."
    )


def _at(one: Candidate) -> str:
    return f"{_number(one.gain)} at an accuracy of {one.accuracy:.4f}"


def _number(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")
