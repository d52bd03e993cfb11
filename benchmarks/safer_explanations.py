"""Safer explanations by records: what they still explain against what they still give away.

usage: python benchmarks/safer_explanations.py [--records 2000] [--seed 0] [--only explain-crowd]

A logistic regression (C = 1) of 2,000 records of Adult, with exact influence. For each defense,
fidelity, on 500 people who are not in the training set: the share of their true five most
influential records that is shown, how much of the influence of those five the records shown have,
and the share of people who are shown any record. And what attacks bring back, as shares of the
training set: members whom their own explanation shows, for explanations of 1, 5 and 10 records;
the same (k = 5) asked twice as far from the mean as the record is, and asked twenty times beside
the record, with noise of a tenth of each feature's spread; members and others who are refused
(k = 5); records shown to the 500 people (k = 5); records shown to a walk from a record, and to one
that asks twice as far from the people's mean (k = 5, means of five walks); and the number of
records that Algorithm 1 finds at k = 1 and k = 5, by values or, where none are told, without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import leakscope as ls
from leakscope.channels.influence import Around, ExactInfluence
from leakscope.channels.oracle import LocalOracle
from leakscope.defenses.crowd import CrowdedExplanations
from leakscope.defenses.drawn import ExponentialExplanations
from leakscope.defenses.explanations import ExplanationDefense
from leakscope.defenses.refusal import RefusedExplanations
from leakscope.extractions import Reconstruction, SelfReveal, StaticQueries, Traversal
from leakscope.protocols import Explainer, Floats, Indices

PEOPLE = 500
WALKS = 5
OUTWARD = 1.0
BESIDE = 0.1
COPIES = 20
# Whoever knows the key can take the draws apart: one that is published is for measuring alone.
KEY = "safer_explanations.py"

# Each list of defenses is one row: they are wrapped around each other.
ROWS: list[list[ExplanationDefense]] = [
    [],
    [ExponentialExplanations(10.0, key=KEY)],
    [ExponentialExplanations(50.0, key=KEY)],
    [ExponentialExplanations(150.0, key=KEY)],
    [CrowdedExplanations(2)],
    [CrowdedExplanations(20)],
    [CrowdedExplanations(20, radius=4.0)],
    [RefusedExplanations()],
    [RefusedExplanations(2.0)],
    [RefusedExplanations(show_others=True)],
    [RefusedExplanations(2.0, show_others=True)],
    [CrowdedExplanations(20), RefusedExplanations(2.0, show_others=True)],
]


@dataclass(frozen=True, eq=False)
class Moved(Around):
    """An explainer as it is seen by one who asks farther out than at the records shown."""

    centre: Floats

    def predict(self, X: Floats) -> Floats:
        """What is predicted there."""
        return self.explainer.predict(self._moved(X))

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """What explains it there."""
        return self.explainer.explain(self._moved(X), k)

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The influence there."""
        return self.explainer.influence_chunks(self._moved(X))

    def _moved(self, X: Floats) -> Floats:
        return X + OUTWARD * (X - self.centre)


@dataclass(frozen=True, eq=False)
class Subject:
    """A model with its records, and people who are not among them."""

    plain: Explainer
    people: Floats
    race: NDArray[Any]
    seed: int

    @property
    def members(self) -> Floats:
        """The training records."""
        return self.plain.X

    def fidelity(self, safer: Explainer) -> list[str]:
        """What the explanations are still worth."""
        true, values = self.plain.explain(self.people, 5)
        shown, _ = safer.explain(self.people, 5)
        hits = (shown[:, :, None] == true[:, None, :]).any(axis=2).sum(axis=1) / 5
        everything = np.concatenate(
            [np.abs(part) for _, part in self.plain.influence_chunks(self.people)]
        )
        kept = np.take_along_axis(everything, shown, axis=1) * (shown >= 0)
        share = kept.sum(axis=1) / np.abs(values).sum(axis=1)
        return [percent(hits.mean()), percent(share.mean()), percent((shown >= 0).any(1).mean())]

    def attacks(self, safer: Explainer) -> list[str]:
        """What is still given away."""
        own = SelfReveal(self.members).run(LocalOracle.of(safer, k=10))
        refused = [
            SelfReveal(asked, ks=(5,)).run(LocalOracle.of(safer)).details["refused"] / len(asked)
            for asked in (self.members, self.people)
        ]
        static = StaticQueries(self.people, seed=self.seed).run(LocalOracle.of(safer))
        return [
            " / ".join(percent(one.share.value) for one in own.groups),
            self._found(safer, SelfReveal(self.members, ks=(5,), outward=OUTWARD)),
            self._found(
                safer,
                SelfReveal(self.members, ks=(5,), beside=BESIDE, copies=COPIES, seed=self.seed),
            ),
            " / ".join(percent(one) for one in refused),
            percent(static.recovered / len(self.members)),
            percent(self._walked(safer))
            + " / "
            + percent(self._walked(Moved(safer, self.people.mean(axis=0)))),
            " / ".join(str(self._reconstructed(safer, k)) for k in (1, 5)),
        ]

    def by_race(self, safer: Explainer) -> dict[str, str]:
        """Whom their own explanation of five records shows, by the members' race."""
        attack = SelfReveal(self.members, ks=(5,), groups={"race": self.race})
        groups = attack.run(LocalOracle.of(safer)).groups
        return {
            f"{one.value} ({one.n})": f"{percent(one.share.value)} "
            f"({percent(one.share.low)} to {percent(one.share.high)})"
            for one in groups
        }

    def _found(self, safer: Explainer, attack: SelfReveal) -> str:
        return percent(attack.run(LocalOracle.of(safer)).groups[0].share.value)

    def _walked(self, safer: Explainer) -> float:
        starts = np.random.default_rng(self.seed).choice(len(self.members), WALKS, replace=False)
        seen = [
            Traversal(self.members[[start]]).run(LocalOracle.of(safer)).recovered
            for start in starts.tolist()
        ]
        return float(np.mean(seen)) / len(self.members)

    def _reconstructed(self, safer: Explainer, k: int) -> int:
        return Reconstruction(seed=self.seed).run(LocalOracle.of(safer, k=k)).recovered


def percent(share: float) -> str:
    """A share as a percentage without its sign."""
    return f"{100 * share:.3g}" if share else "0"


def subject(records: int, seed: int) -> Subject:
    """Records of Adult, a model of them, and people who are not among them."""
    adult = ls.load_dataset("adult", encoding="onehot")
    order = np.random.default_rng(seed).permutation(len(adult.y))
    X, rows = np.asarray(adult.X), order[:records]
    models = ls.exact.leave_one_out(X[rows], adult.y[rows], l2=1.0)
    plain = ExactInfluence(models, adult.y[rows])
    people = X[order[records : records + PEOPLE]]
    return Subject(plain, people, adult.groups["race"][rows], seed)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as Markdown."""
    for row in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(row) + " |")
    print()


def named(defenses: Sequence[ExplanationDefense]) -> str:
    """The defenses of a row, with the options that their names do not tell."""
    told = [
        f"{one}, radius {one.radius:g}"
        if isinstance(one, CrowdedExplanations) and one.radius is not None
        else str(one)
        for one in defenses
    ]
    return " + ".join(told) or "none"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=2000, help="training records")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="the rows whose name has this in it")
    options = parser.parse_args()
    start = time.perf_counter()
    asked = subject(options.records, options.seed)
    fidelity, attacks = list[list[str]](), list[list[str]]()
    races = dict[str, dict[str, str]]()
    for defenses in [one for one in ROWS if options.only in named(one)]:
        safer: Explainer = asked.plain
        for defense in defenses:
            safer = defense.around(safer)
        fidelity.append([named(defenses), *asked.fidelity(safer)])
        attacks.append([named(defenses), *asked.attacks(safer)])
        if all(isinstance(one, CrowdedExplanations) for one in defenses):
            races[named(defenses)] = asked.by_race(safer)
    print("Fidelity, in percent:\n")
    table(["defense", "true top 5 shown", "their influence kept", "queries answered"], fidelity)
    print(
        "What is given away, in percent of the training set, and records that Algorithm 1 finds:\n"
    )
    table(
        [
            "defense",
            "own record shown, k = 1 / 5 / 10",
            "asked outward",
            f"asked {COPIES} times beside",
            "refused, members / others",
            f"shown to {PEOPLE} others",
            "walk / outward",
            "Algorithm 1, k = 1 / 5",
        ],
        attacks,
    )
    if races:
        print("Own record shown at k = 5 by race, in percent with 95 % intervals:\n")
        groups = next(iter(races.values()))
        table(
            ["race (members)", *races],
            [[one, *(row[one] for row in races.values())] for one in groups],
        )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
