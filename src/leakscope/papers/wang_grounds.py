"""Where Algorithm 1 of Wang et al. (2020) is searched, and what the searches of a set-up find.

A set-up with records that no table has is searched on those. Any other is searched on the members
and D′ of its tables, with the very models that the tables have. No model is judged on the
non-members that attacks on it are evaluated on, but D′ of one seed has some of another seed's: so
the same models are judged once more without every record that is one of them in any seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from leakscope.auditing.battery import channel_of
from leakscope.comparing.costs import alone
from leakscope.comparing.dividing import MEMBER, REFERENCE, Division, divide
from leakscope.defenses.pruning import BudgetSearch, Candidate, search_among
from leakscope.leakage.gain import GROUPS, output_gain
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_parallel import each
from leakscope.papers.wang_comparing import plan_of
from leakscope.papers.wang_setups import Pool, Setup, repetitions
from leakscope.protocols import Bools, Model
from leakscope.records import Records
from leakscope.trials import model_seeds

# How many times the recipe's learning rate: while a network is pruned, and then trained again.
RATES = ((1.0, 1.0), (1.0, 0.1), (0.3, 0.3), (0.3, 0.03), (0.1, 0.1), (0.1, 0.01))
# How much less accurate on D′ than the undefended network the chosen one may be.
TOLERANCE = 0.01
# Records on a side without which there is no gain to be measured.
FEWEST = 2 * GROUPS


@dataclass(frozen=True, eq=False)
class Ground:
    """The records of a search, with a division and the seed of its models for each repetition.

    in_tables: whether records, divisions and seeds are those of the tables.
    """

    pool: Pool
    divisions: Sequence[Division]
    seeds: Sequence[int]
    in_tables: bool

    @property
    def name(self) -> str:
        """Of the set-up."""
        return self.pool.setup.name

    @property
    def spared(self) -> Bools:
        """Which records (n,) are in no division among the non-members of the evaluation."""
        evaluated: Bools = np.any([one.evaluated for one in self.divisions], axis=0)
        return ~evaluated

    def spared_as(self, role: int) -> list[int]:
        """How many records of a role these are, for each division."""
        return [int((self.spared & (one.roles == role)).sum()) for one in self.divisions]

    @property
    def shared(self) -> bool:
        """Whether D′ of one repetition may have non-members of the evaluation of another."""
        return self.in_tables and len(self.divisions) > 1

    @property
    def judged_spared(self) -> bool:
        """Whether models are judged without what is evaluated, too."""
        least = min(*self.spared_as(MEMBER), *self.spared_as(REFERENCE))
        return self.shared and least >= FEWEST


def ground_of(pool: Pool, setting: Setting) -> Ground:
    """Records that no table has, where there are such; otherwise those of the tables."""
    apart = pool.setup.load_apart(setting)
    return _of_tables(pool, setting) if apart is None else _beside(pool.setup, apart, setting)


def _of_tables(pool: Pool, setting: Setting) -> Ground:
    """Divided as in the tables, with the seeds of their models."""
    plan = plan_of(pool, ["prune"], setting)
    seeds = model_seeds(plan.seed, len(plan.divisions))
    return Ground(Pool(pool.setup, plan.records), plan.divisions, seeds, in_tables=True)


def _beside(setup: Setup, records: Records, setting: Setting) -> Ground:
    """Other records, and as many members as they have for three sets."""
    third, count = len(records) // 3, repetitions(setting)
    size = min(setup.members[setting.scale] or third, third)
    pool = Pool(replace(setup, members={setting.scale: size}), records)
    return Ground(pool, divide(records, size, setting.seed, count), range(count), in_tables=False)


@dataclass(frozen=True, eq=False)
class Found:
    """The searches on a ground, one for each repetition.

    spared: the same models, judged without the non-members of the evaluation of any repetition;
    none where that is not asked for or too few records are left.
    """

    ground: Ground
    alone: Sequence[BudgetSearch]
    spared: Sequence[BudgetSearch]


def search(grounds: Sequence[Ground], setting: Setting) -> list[Found]:
    """Every candidate of every repetition, all grounds at once."""
    tasks = [
        partial(_one, ground, number, setting.seed)
        for ground in grounds
        for number in range(len(ground.divisions))
    ]
    names = ", ".join(ground.name for ground in grounds)
    done = iter(each(tasks, setting, f"{names}: searching for the least gain"))
    found = []
    for ground in grounds:
        own = [next(done) for _ in ground.divisions]
        found.append(
            Found(ground, [first for first, *_ in own], [one for _, *rest in own for one in rest])
        )
    return found


def _one(ground: Ground, number: int, seed: int) -> list[BudgetSearch]:
    """The search of one repetition: judged on all, and where it may be on spared records alone."""
    setup, records = ground.pool.setup, ground.pool.records
    everyone = np.ones(len(records), dtype=bool)
    return search_among(
        alone(setup.recipe),
        records,
        ground.divisions[number].roles,
        ground.seeds[number],
        [replace(setup.pruning, rate=one, retrain_rate=other) for one, other in RATES],
        [everyone, ground.spared] if ground.judged_spared else [everyone],
        gain=partial(gain_of, seed=seed),
        tolerance=TOLERANCE,
    )


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
