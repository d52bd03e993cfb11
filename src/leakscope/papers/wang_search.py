"""Algorithm 1 of Wang et al. (2020): of several prunings the one that gives an inference least.

The paper chooses among numbers of weights. Here it is how fast a network learns while it is pruned
and trained again that is chosen, at the ratio of the tables: that decides how closely what is left
fits the members. Gain and accuracy are measured between members and D′, on records that no table
has, so that no attack there has had a part in the choice. The candidates themselves were drawn up
after a trial on other training images in which attacks were looked at too, see docs/papers.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leakscope.auditing.battery import channel_of
from leakscope.comparing.dividing import divide
from leakscope.defenses.pruning import BudgetSearch, Candidate, search_budgets
from leakscope.leakage.gain import output_gain
from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_parallel import each
from leakscope.papers.wang_comparing import NONE
from leakscope.papers.wang_setups import MNIST, PAPER, Pool, pools, setup_of
from leakscope.protocols import Model
from leakscope.records import Records
from leakscope.registry import register

# How many times the recipe's learning rate: while a network is pruned, and then trained again.
RATES = ((1.0, 1.0), (1.0, 0.1), (0.3, 0.3), (0.3, 0.03), (0.1, 0.1), (0.1, 0.01))
# Networks that each candidate is judged by.
SEEDS: dict[Scale, int] = {"quick": 2, "full": 5}
# How much less accurate on D′ than the undefended network the chosen one may be.
TOLERANCE = 0.01


@register("experiment", "wang-algorithm1", paper=f"{PAPER}, algorithm 1")
def least_gain(setting: Setting) -> Experiment:
    """The search for the pruning of least inference gain under a tolerance in accuracy."""
    (pool, *_), missing = pools(setting, [MNIST.name])
    apart = pool.setup.load_apart(setting)
    searched = _searched(pool, pool.records if apart is None else apart, setting)
    setting = replace(setting, seeds=setting.seeds or SEEDS[setting.scale])
    found = together(searches(searched, setting))
    rows = [_row(pool.setup.name, one, found) for one in (found.baseline, *found.candidates)]
    return Experiment(
        experiment="wang-algorithm1",
        paper=f"{PAPER}, algorithm 1",
        setup=setup_of(
            [searched],
            setting,
            gain="−log 4 + 2·JS, by histograms of the logit margins of members and of D′; means "
            "over seeds",
            tolerance=TOLERANCE,
            records="those of the tables" if apart is None else "none of them is in a table",
        ),
        rows=rows,
        paper_rows=[
            {"claim": "of several numbers of weights the one of least gain is chosen",
             "source": "algorithm 1"},
        ],
        notes=[*_notes(pool, found, rows), *missing],
    )  # fmt: skip


def _searched(pool: Pool, records: Records, setting: Setting) -> Pool:
    """The set-up with these records, and as many members as they have for three sets."""
    third = len(records) // 3
    size = min(pool.setup.members[setting.scale] or third, third)
    return Pool(replace(pool.setup, members={setting.scale: size}), records)


def searches(pool: Pool, setting: Setting) -> list[BudgetSearch]:
    """A search for each seed, on members and D′ of its own."""
    setup = pool.setup
    size = setup.members[setting.scale]
    divisions = divide(pool.records, size, setting.seed, setting.seeds or 1)
    choices = [
        replace(setup.pruning, rate=rate, retrain_rate=retrain_rate) for rate, retrain_rate in RATES
    ]
    tasks = [
        partial(
            search_budgets,
            replace(setup.recipe, stack=1),
            pool.records,
            division.roles,
            number,
            choices,
            gain=partial(gain_of, seed=setting.seed),
            tolerance=TOLERANCE,
        )
        for number, division in enumerate(divisions)
    ]
    return each(tasks, setting, f"{setup.name}: searching for the least gain")


def gain_of(model: Model, members: Records, reference: Records, seed: int = 0) -> float:
    """What the best inference of membership gains from the logit margins of a model."""
    margin = channel_of("margin", seed)
    sides = [margin.observe(model, one)[:, :1] for one in (members, reference)]
    membership = np.repeat([True, False], [len(one) for one in sides])
    return output_gain(np.concatenate(sides), membership, seed=seed).gain.value


def together(found: Sequence[BudgetSearch]) -> BudgetSearch:
    """One search with the means of several."""
    first = found[0]
    columns = zip(*((one.baseline, *one.candidates) for one in found), strict=True)
    baseline, *candidates = [_mean(column) for column in columns]
    return BudgetSearch(baseline, tuple(candidates), first.tolerance)


def _mean(column: Sequence[Candidate]) -> Candidate:
    gain, accuracy = (
        float(np.mean([getattr(one, key) for one in column])) for key in ("gain", "accuracy")
    )
    return replace(column[0], gain=gain, accuracy=accuracy)


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


def _notes(pool: Pool, found: BudgetSearch, rows: Sequence[Row]) -> Iterator[str]:
    plain, least = found.baseline, min(found.candidates, key=lambda one: one.gain)
    told = f"{pool.setup.name}: the undefended network has a gain of {_number(plain.gain)}"
    yield f"{told} and an accuracy on D′ of {plain.accuracy:.3f}; −1.386 is no gain."
    if found.chosen is None:
        yield (
            f"None of {len(rows) - 1} candidates is within {TOLERANCE:g} of that accuracy, and "
            "none is chosen."
        )
        return
    yield (
        f"{found.chosen.pruning} is chosen: a gain of {_number(found.chosen.gain)} at "
        f"{found.chosen.accuracy:.3f}, the least of {len(found.allowed)} candidates that are "
        f"accurate enough, of {len(rows) - 1}."
    )
    if least.gain < found.chosen.gain:
        yield (
            f"{least.pruning} would gain less ({_number(least.gain)}), at an accuracy of "
            f"{least.accuracy:.3f}, which is too low."
        )
    same = found.chosen.pruning == pool.setup.pruning
    yield (
        f"The tables have {pool.setup.pruning}, "
        f"{'which is that one' if same else 'which is another one'}."
    )


def _number(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")
