"""Attacks that are taught by examples: what they share, whoever the examples come from.

They come from known members of the target, half of the records teaching the attack on the other
half, or, for an adversary who knows none, from shadow models and theirs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.stats import rankdata

from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence
from leakscope.options import whole_number
from leakscope.protocols import BOTH, Attack, Bools, Floats, Knowledge, Task

# From this rank correlation on, two numbers plainly rise together. Noise in an explanation can make
# those of members the larger by a little, which is no reason to turn what was learned.
PLAIN = 0.3

# From evidence of r records to the log-odds that each is a member, (r,).
Learned = Callable[[Evidence], Floats]


@dataclass(frozen=True)
class TaughtAttack(Attack):
    """An attack that learns from examples of members and of others what a member looks like.

    A subclass says how it is taught, and which number members are taken to have more of.
    """

    tasks: ClassVar[frozenset[Task]] = BOTH
    knowledge: ClassVar[Knowledge] = "members of the other half"
    on_request: ClassVar[bool] = True

    @abstractmethod
    def teach(self, known: Evidence, told: Bools) -> Learned:
        """Learn to tell the records whose told is True from the others, (r,) each."""

    @abstractmethod
    def expected(self, evidence: Evidence) -> Floats:
        """What members are taken to have more of, before anything is learned, (n,)."""

    def score(self, evidence: Evidence) -> Floats:
        """The log-odds of membership, (n,), each learned on the other half.

        Where they plainly fall with what members are expected to have more of, their sign is
        turned. So swapped sides give the same scores and 1 − AUC, and a model that hides its
        members too well shows as an advantage below 0. Where they neither rise nor fall with it
        there is no such direction, and the sign is that learned.
        """
        odds = evidence.cross_fit(self.learn)
        return -odds if rank_correlation(odds, self.expected(evidence)) < -PLAIN else odds

    def threshold(self, evidence: Evidence) -> float | None:
        """Even odds."""
        return 0.0

    def learn(self, known: Evidence, membership: Bools) -> Learned:
        """What these records teach, negated exactly if their sides are swapped.

        The learner is told which records are on the side of the first, whichever that is: swapped
        sides are one task to it, and the sign is put in afterwards. Which side has more records
        must not be learned: its log-odds are taken out.
        """
        if membership.all() or not membership.any():
            raise NotApplicableError(
                f"The {self.name} attack has members or non-members only to learn from; give more "
                "records"
            )
        told = membership == membership[0]
        learned = self.teach(known, told)
        before = np.log(told.sum()) - np.log((~told).sum())
        sign = 1.0 if membership[0] else -1.0
        return lambda asked: sign * (learned(asked) - before)


@dataclass(frozen=True)
class ByShadows(Attack):
    """The same attack, taught by what shadow models show of their own members.

    rows: how many examples teach it at most, as many of members as of others. By name it is that
    of the attack with ``-shadow`` behind it.
    """

    attack: TaughtAttack
    rows: int = 20_000

    knowledge: ClassVar[Knowledge] = "how it was trained, and records like its members"
    shadows: ClassVar[int] = 2
    on_request: ClassVar[bool] = True

    # What stands in the class elsewhere is the attack's own here.
    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the attack, with -shadow behind it."""
        return f"{self.attack.name}{BEHIND}"

    @property
    def paper(self) -> str:  # type: ignore[override]
        """The paper of the attack, and that of shadow models."""
        return f"{self.attack.paper}; Shokri et al. 2017, section V"

    @property
    def channel(self) -> str:  # type: ignore[override]
        """The channel of the attack."""
        return self.attack.channel

    @property
    def tasks(self) -> frozenset[Task]:  # type: ignore[override]
        """The tasks of the attack."""
        return self.attack.tasks

    def score(self, evidence: Evidence) -> Floats:
        """The log-odds that what is seen is that of a member, (n,)."""
        known, inside = shadow_examples(evidence, whole_number("rows", self.rows, 2))
        return self.attack.learn(known, inside)(evidence)

    def threshold(self, evidence: Evidence) -> float | None:
        """Even odds."""
        return 0.0


# What is behind the name of an attack that is taught by shadow models.
BEHIND = "-shadow"


def shadow_examples(evidence: Evidence, rows: int) -> tuple[Evidence, Bools]:
    """What shadow models show of r drawn records: evidence of them, and who was a member, (r,).

    At most half of the rows are drawn from either side, over all models.
    """
    rng = np.random.default_rng(evidence.seed)
    n = evidence.shadow_membership.shape[1]
    drawn = []
    for side in (evidence.shadow_membership, ~evidence.shadow_membership):
        places = np.flatnonzero(side)
        if len(places) > rows // 2:
            places = rng.choice(places, rows // 2, replace=False, shuffle=False)
        drawn.append(places)
    models, records = np.divmod(np.concatenate(drawn), n)
    seen = np.empty((len(models), evidence.shadow_observations.shape[2]))
    for model in np.unique(models):
        own = models == model
        seen[own] = evidence.shadow_observations[int(model), records[own]]
    examples = replace(evidence, observations=seen, labels=evidence.labels[records])
    return examples, np.arange(len(models)) < len(drawn[0])


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's rank correlation of two numbers of n records; 0 where one is constant."""
    ranks = np.column_stack([rankdata(one), rankdata(other)])
    ranks -= ranks.mean(axis=0)
    products = ranks.T @ ranks
    size = np.sqrt(products[0, 0] * products[1, 1])
    return float(products[0, 1] / size) if size > 0 else 0.0
