"""What is audited: the model, and both sides as one pool in an order of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.settings import Settings
from leakscope.auditing.target import unit_counts
from leakscope.controls import Control
from leakscope.controls.overlap import Overlap, find_overlap
from leakscope.controls.target import size_control
from leakscope.evidence import Folds
from leakscope.models import Remembering
from leakscope.protocols import Bools, Model
from leakscope.records import Records, pool
from leakscope.report.words import persons_per_record


@dataclass(frozen=True)
class Subject:
    """What is audited: a model that remembers its answers, and the pool in canonical order.

    blocks (n,): what stays together in a fold and in a shadow model. clusters (n,): rows that count
    together, of one person or equal; None where each stands alone. row (n,): the record's position
    in the user's input, on its side. whole: whether no record had to be taken out. The names are
    for the report.
    """

    model: Model
    records: Records
    membership: Bools
    blocks: NDArray[np.intp]
    folds: Folds
    row: NDArray[np.intp]
    whole: bool
    dataset: str | None
    unit: str

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """Equal records answer alike: as long as some are, they count together."""
        return self.blocks if self.blocks.max() + 1 < len(self.records) else None

    @property
    def nonmembers(self) -> Records:
        """The records that the model was not trained on."""
        return self.records.take(np.flatnonzero(~self.membership))

    @property
    def persons_per_record(self) -> float:
        """Persons for each record; 1 where rows are persons."""
        units = unit_counts(self.records, self.membership)
        if units is None:
            return 1.0
        members = int(self.membership.sum())
        sizes = (members, len(self.records) - members)
        return persons_per_record((units["members"], units["nonmembers"]), sizes)

    def seen_through(self, model: Model) -> Subject:
        """The same with another model in its place, which remembers its answers too."""
        return replace(self, model=Remembering(model))


def make_subject(
    model: Model,
    members: Records,
    nonmembers: Records,
    settings: Settings,
    *,
    dataset: str | None,
    unit: str | None,
) -> tuple[Subject, list[Control]]:
    """Both sides as one pool without the records that are on both, and what was found of that."""
    nonmembers = nonmembers.in_the_columns_of(members)
    overlap = _overlap(model, members, nonmembers, settings.max_overlap)
    kept = (np.arange(len(members)), np.arange(len(nonmembers)))
    if overlap is not None and not overlap.refused:
        kept = (np.flatnonzero(~overlap.members), np.flatnonzero(~overlap.found))
    records, membership, row = _canonical(members, nonmembers, *kept)
    # Equal predictions are not equal records.
    blocks = records.blocks(join_equal=has_features(model))
    subject = Subject(
        Remembering(model),
        records,
        membership,
        blocks,
        Folds.draw(blocks, membership, settings.seed),
        row,
        len(kept[1]) == len(nonmembers),
        dataset,
        unit or "unit",
    )
    return subject, [_overlap_control(overlap), _size_control(records, membership)]


def has_features(model: Model) -> bool:
    """Whether records are more than the predictions saved for them."""
    return "queries" in model.abilities


def _overlap(model: Model, members: Records, nonmembers: Records, limit: float) -> Overlap | None:
    """None where there is nothing to compare."""
    if not has_features(model) and members.unit is None:
        return None
    return find_overlap(members, nonmembers, limit, by_features=has_features(model))


def _overlap_control(overlap: Overlap | None) -> Control:
    if overlap is None:
        detail = (
            "Saved predictions have no features to compare: see that no record is on both sides."
        )
        return Control("overlap", None, True, detail, "no record is on both sides")
    return overlap.control()


def _size_control(records: Records, membership: Bools) -> Control:
    units = unit_counts(records, membership)
    if units is None:
        return size_control(int(membership.sum()), int((~membership).sum()))
    return size_control(units["members"], units["nonmembers"], persons=True)


def _canonical(
    members: Records,
    nonmembers: Records,
    kept_members: NDArray[np.intp],
    kept_nonmembers: NDArray[np.intp],
) -> tuple[Records, Bools, NDArray[np.intp]]:
    """Both sides as one pool in canonical order, with membership and rows in the user's input."""
    records, membership = pool(members.take(kept_members), nonmembers.take(kept_nonmembers))
    row = np.concatenate([kept_members, kept_nonmembers])
    order = records.canonical_order(membership)
    return records.take(order), membership[order], row[order]
