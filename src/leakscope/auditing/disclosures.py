"""What can be read out of explanations by records: each extraction against the audited model.

An attack says whether a record was a member; an extraction brings records back. They run where the
channel ``records`` is asked for by name, each against an oracle of its own with the same budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from leakscope.channels.influence import Explained, NoInfluence, explained, with_records
from leakscope.channels.oracle import LocalOracle
from leakscope.channels.perturbing import spread
from leakscope.errors import LeakscopeError, NotApplicableError
from leakscope.extractions import (
    Disclosure,
    InfluenceGraph,
    Reconstruction,
    SelfReveal,
    StaticQueries,
    Traversal,
)
from leakscope.extractions.disclosure import EVERYONE, check_columns, excess
from leakscope.models.answers import first_line
from leakscope.protocols import Attack, ExplainedModel, Model, Progress, Show
from leakscope.records import Records

RECORDS = "records"
# By so many records a prediction is explained, but where another number is named.
K = 5
# Explanations of these sizes are looked at for the record that is asked about.
KS = (1, 5, 10)
# What each extraction may ask at most.
BUDGET = 100_000

EXTRACTIONS: tuple[type[Any], ...] = (SelfReveal, Traversal, StaticQueries, Reconstruction)


@dataclass(frozen=True)
class Disclosures:
    """What the report says of extractions, and why others did not run."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Explaining:
    """The model as attacks see it: with the records that explain it, where that is asked for.

    members: its training records in the order of the explainer, where extractions are asked for;
    not_run: why attacks and extractions that go through explanations do not run.
    """

    model: Model
    members: Records | None = None
    not_run: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Model,
        members: Records,
        attacks: Sequence[Attack],
        channels: Sequence[str] | None,
        progress: Progress,
    ) -> Explaining:
        """Leave every member out if an attack asks for it; extractions if the channel is named."""
        names = [one.name for one in attacks if one.channel == RECORDS]
        if not names:
            return cls(model)
        extracting = extractions_asked_for(attacks, channels)
        if extracting:
            check_columns(members.groups)
        try:
            found, ordered = _with_members(model, members, progress)
        except LeakscopeError as reason:
            # A model that comes with explanations is attacked through these all the same.
            stopped = extracting if RECORDS in model.abilities else names + extracting
            return cls(model, not_run=dict.fromkeys(stopped, str(reason)))
        return cls(found, ordered if extracting else None)

    def disclosed(self, nonmembers: Records, seed: int, progress: Progress) -> Disclosures:
        """What each extraction brings back; the non-members are those its adversary may hold."""
        if self.members is None:
            return Disclosures(not_run=self.not_run)
        reading = _Reading(with_records(self.model), self.members, nonmembers, seed)
        told = Disclosures()
        with threadpool_limits(limits=1):
            for step, (name, run) in enumerate(plan := list(reading.plan())):
                progress(f"reading records out of explanations: {name}", step, len(plan))
                try:
                    told.entries.append(run().to_dict())
                except LeakscopeError as reason:
                    told.not_run[name] = str(reason)
                except Exception as error:  # whatever it is, the rest of the audit is not lost
                    told.not_run[name] = f"It failed ({type(error).__name__}: {first_line(error)})."
            progress("done", len(plan), len(plan))
        return told


def extractions_asked_for(attacks: Sequence[Attack], channels: Sequence[str] | None) -> list[str]:
    """The names of the extractions, where the channel is named and an attack goes through it."""
    if RECORDS in (channels or ()) and any(one.channel == RECORDS for one in attacks):
        return [one.name for one in EXTRACTIONS]
    return []


def uninfluenced(model: Model, like: Model) -> Model:
    """A model on which no record has any influence, where the other one is explained by records."""
    if RECORDS not in like.abilities:
        return model
    other = with_records(like)
    return Explained(model, NoInfluence(other.explainer), other.prepared)


def _with_members(
    model: Model, members: Records, progress: Progress
) -> tuple[ExplainedModel, Records]:
    """The model with the records that explain it, and the members in the order of these."""
    if RECORDS not in model.abilities:
        # So that the order of the input changes nothing.
        ordered = members.take(members.canonical_order())
        return explained(model, ordered, progress), ordered
    found = with_records(model)
    if not np.array_equal(found.prepared(members.X), found.explainer.X):
        raise NotApplicableError(
            f"The records that explain {model.name} are not the members in their order."
        )
    return found, members


@dataclass(frozen=True, eq=False)
class _Reading:
    """The adversaries of one model: what each holds, asks and brings back."""

    model: ExplainedModel
    members: Records
    nonmembers: Records
    seed: int

    def plan(self) -> Iterator[tuple[str, Callable[[], Disclosure]]]:
        """Each extraction under its name."""
        yield SelfReveal.name, self._self_reveal
        yield Traversal.name, self._traversal
        yield StaticQueries.name, self._static
        if self.model.classes is None or len(self.model.classes) != 2:
            yield Reconstruction.name, self._no_reconstruction
            return
        for k in (1, K):
            yield f"{Reconstruction.name} at k = {k}", partial(self._reconstruction, k)

    def _oracle(self, k: int, show: Show) -> LocalOracle:
        return LocalOracle.of(self.model.explainer, k=k, show=show, budget=BUDGET)

    def _self_reveal(self) -> Disclosure:
        """Every member asked about, and every non-member, who may have equals among them."""
        X, people = self.model.explainer.X, self.members
        asking = SelfReveal(X, KS, people.groups, people.unit)
        told = asking.run(self._oracle(max(KS), "records"))
        X, people = self.model.prepared(self.nonmembers.X), self.nonmembers
        others = SelfReveal(X, KS, unit=people.unit).run(self._oracle(max(KS), "records"))
        return _with_budget(told, others=_beside(told, others))

    def _traversal(self) -> Disclosure:
        """A walk from one member, drawn by the seed, and the graph it walks along."""
        explainer = self.model.explainer
        start = int(np.random.default_rng(self.seed).integers(len(self.members)))
        told = Traversal(explainer.X[[start]], seed=self.seed).run(self._oracle(K, "records"))
        graph = InfluenceGraph.of(explainer.explain(explainer.X, K)[0])
        return self._among(
            told,
            graph=graph.table(),
            reach_mean=float(graph.shown.mean()),
            reach_median=float(np.median(graph.shown)),
            reach_share=float(graph.shown.mean() / len(graph.shown)),
            omniscient_queries=graph.omniscient_queries(start),
        )

    def _static(self) -> Disclosure:
        """Every non-member asked about once, by somebody who holds them."""
        held = self.model.prepared(self.nonmembers.X)
        asking = StaticQueries(held, "actual", queries=len(held), seed=self.seed)
        return self._among(asking.run(self._oracle(K, "records")))

    def _reconstruction(self, k: int) -> Disclosure:
        """Algorithm 1, bounded by what the adversary cannot know: how the members lie."""
        told = Reconstruction(seed=self.seed).run(self._oracle(k, "signed"))
        bound, rank = told.bound, self._rank
        if bound is not None:
            bound = min(bound, (rank + 1) * k, len(self.members))
        return self._among(replace(told, bound=bound), rank=rank)

    @cached_property
    def _rank(self) -> int:
        """In how many directions the members differ; influence differs in no other."""
        X = self.model.explainer.X
        scale = spread(X)
        scale[scale == 0] = 1.0
        return int(np.linalg.matrix_rank((X - X.mean(axis=0)) / scale))

    def _no_reconstruction(self) -> Disclosure:
        classes = self.model.classes
        has = "predicts numbers" if classes is None else f"has {len(classes)}"
        raise NotApplicableError(
            f"It reads a logistic regression of two classes, and {self.model.name} {has}."
        )

    def _among(self, told: Disclosure, **details: Any) -> Disclosure:
        """With the share of all members that was shown, by group, and more to be told."""
        people = self.members
        return _with_budget(told.among(len(people), people.groups, people.unit), **details)


def _with_budget(told: Disclosure, **details: Any) -> Disclosure:
    return replace(told, details={**told.details, **details, "budget": BUDGET})


def _beside(told: Disclosure, others: Disclosure) -> list[dict[str, Any]]:
    """The share of other people at each k, and by how much that of everyone told is larger."""
    everyone = {one.k: one.share for one in told.groups if one.group == EVERYONE}
    return [
        {
            "k": one.k,
            "n": one.n,
            "recovered": one.recovered,
            "share": one.share.to_dict(),
            "excess": excess(everyone[one.k], one.share).to_dict(),
        }
        for one in others.groups
        if one.k in everyone
    ]
