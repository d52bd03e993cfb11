"""Records: a pool of features and labels, checked at the door, with groups and units.

A *unit* is the person a row belongs to. Rows of one unit, and rows that are equal, always go to
the same side of a split and to the same fold. Splits and samples depend on what the records hold
and on the seed, never on the order they came in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import RecordsError
from leakscope.records.checks import (
    Features,
    checked_column,
    checked_features,
    checked_groups,
    listed,
    read_only,
    refuse_repeated_columns,
)
from leakscope.records.content import (
    Keys,
    column_numbers,
    columns_digest,
    content_hash,
    joined_blocks,
    numbered,
    row_keys,
    side_digest,
)
from leakscope.records.sides import joined_features, joined_groups, joined_labels

__all__ = ["Features", "Keys", "Records", "pool"]


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """A pool of n records.

    X: features, (n, …) numbers or a DataFrame whose text columns the model's own pipeline encodes.
    y: labels, (n,), classes or numbers. groups: {name: (n,)}, to report by. unit: (n,), the person
    each row belongs to. Missing features are let through here; whether the model takes them is
    checked when it is asked. Arrays are not copied: leave them as they are once they are in.
    """

    X: Features
    y: NDArray[Any]
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    unit: NDArray[Any] | None = None
    name: str = "records"

    def __post_init__(self) -> None:
        X = checked_features(self.X, self.name)
        n = len(X)
        checked = {
            "X": X,
            "y": checked_column(self.y, n, "label", self.name),
            "groups": checked_groups(self.groups, n, self.name),
            "unit": None if self.unit is None else checked_column(self.unit, n, "unit", self.name),
        }
        vars(self).update(checked)  # past the frozen setattr, as the attributes' first values

    @classmethod
    def _unchecked(
        cls,
        X: Features,
        y: NDArray[Any],
        groups: Mapping[str, NDArray[Any]],
        unit: NDArray[Any] | None,
        name: str,
    ) -> Records:
        """Records made of parts of checked ones: nothing is looked at a second time."""
        records = object.__new__(cls)
        vars(records).update(X=X, y=y, groups=groups, unit=unit, name=name)
        return records

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        shape = " × ".join(str(size) for size in self.X.shape)
        groups = f", by {', '.join(self.groups)}" if self.groups else ""
        return f"<Records {self.name!r}: {shape}{groups}{'' if self.unit is None else ', by unit'}>"

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        label: str | ArrayLike,
        *,
        groups: Sequence[str] = (),
        unit: str | None = None,
        features: Sequence[str] | None = None,
        name: str = "records",
    ) -> Records:
        """Records from a table; label is the name of a column, or the labels themselves, (n,).

        Features are the columns asked for, or every column but the label and the unit; a group
        column stays among them, because a model usually sees it too.
        """
        refuse_repeated_columns(frame, name)
        named: list[Any] = [label] if np.ndim(label) == 0 else []
        if features is None:
            features = [column for column in frame.columns if column not in [*named, unit]]
        for column in [*named, *groups, *([] if unit is None else [unit]), *features]:
            if column not in frame.columns:
                have = listed(frame.columns)
                raise RecordsError(f"The {name} have no column {column!r}; they have: {have}")
        return cls(
            X=frame[list(features)],
            y=np.asarray(frame[named[0]] if named else label),
            groups={column: frame[column].to_numpy() for column in groups},
            unit=None if unit is None else frame[unit].to_numpy(),
            name=name,
        )

    @property
    def feature_names(self) -> list[str]:
        """The columns' names; where they have none, positions in the flattened features."""
        if isinstance(self.X, pd.DataFrame):
            return [str(column) for column in self.X.columns]
        return [str(position) for position in range(int(np.prod(self.X.shape[1:])))]

    def take(self, index: NDArray[Any]) -> Records:
        """The records at these positions (or where the mask is true), in that order."""
        y = self.y[index]
        if len(y) == 0:
            raise RecordsError(f"None of the {len(self)} {self.name} is left; give more of them")
        taken = self._unchecked(
            X=self.X.iloc[index].reset_index(drop=True)
            if isinstance(self.X, pd.DataFrame)
            else self.X[index],
            y=y,
            groups={name: values[index] for name, values in self.groups.items()},
            unit=None if self.unit is None else self.unit[index],
            name=self.name,
        )
        if "_keys" in vars(self):  # hashing is the only costly part: hand on what is known
            vars(taken)["_keys"] = self._keys[index]
        return taken

    def protected(self) -> Records:
        """The same records for code that may work in place: read-only arrays, or a copied table."""
        X = self.X.copy() if isinstance(self.X, pd.DataFrame) else read_only(self.X)
        return self._unchecked(X, read_only(self.y), self.groups, self.unit, self.name)

    def in_the_columns_of(self, other: Records) -> Records:
        """The same records with their columns in the order of another's, if both are tables."""
        if not isinstance(self.X, pd.DataFrame) or not isinstance(other.X, pd.DataFrame):
            return self
        if set(self.X.columns) != set(other.X.columns):
            return self  # pool says which column is missing
        X = self.X[list(other.X.columns)]
        return self._unchecked(X, self.y, self.groups, self.unit, self.name)

    def numbers(self) -> NDArray[np.float64]:
        """Features as one matrix of numbers, (n, d): equal texts become equal numbers."""
        if isinstance(self.X, pd.DataFrame):
            return np.column_stack([column_numbers(self.X[name]) for name in self.X.columns])
        return np.asarray(self.X, dtype=np.float64).reshape(len(self), -1)

    def values(self) -> NDArray[np.float64]:
        """Features and label as one matrix of numbers, (n, d+1)."""
        return np.column_stack([self.numbers(), column_numbers(pd.Series(self.y))])

    def keys(self) -> Keys:
        """A number per record that depends on its features and label alone, (n,)."""
        return self._keys

    @cached_property
    def _keys(self) -> Keys:
        features = self.numbers() if isinstance(self.X, pd.DataFrame) else self.X
        keys = row_keys(features, column_numbers(pd.Series(self.y)))
        keys.flags.writeable = False
        return keys

    def fingerprint(self) -> str:
        """A hash of all that a model could be trained on: features, labels, and their order.

        Types and the names of columns count; groups, unit and name, which models do not see, do
        not.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return content_hash(self.X, self.y)

    def side_fingerprint(self, membership: NDArray[np.bool_]) -> dict[str, str]:
        """Digests of the columns, of all members and of all non-members (n,), for a report.

        Two audits of the same records on the same sides have the same digests, in any order.
        """
        return {
            "columns": columns_digest(self.X),
            "members": side_digest(self.keys()[membership]),
            "nonmembers": side_digest(self.keys()[~membership]),
        }

    def canonical_order(self, side: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
        """An order of the records that does not depend on the order they came in.

        Everything random or inexact (folds, noise, sums) is done in this order, so that an audit
        gives the same numbers however its input was sorted. Of equal records on both sides (n,),
        as saved predictions may be, those of the side with the smaller keys come first: which
        side is called which does not matter either.
        """
        ties = [numbered(self.groups[name]) for name in sorted(self.groups)]
        if self.unit is not None:
            ties.append(numbered(self.unit))
        if side is not None:
            smaller = np.sort(self.keys()[side]).tobytes() < np.sort(self.keys()[~side]).tobytes()
            ties.append((side ^ smaller).astype(np.intp))
        return np.lexsort((*ties, self.keys()))

    def blocks(self, *, join_equal: bool = True) -> NDArray[np.intp]:
        """What must stay together, (n,): 0, 1, … one number per distinct record.

        With units, a block is all records of a unit, joined with the units of equal records.
        Without join_equal, equal rows are different records, as saved predictions are.
        """
        if not join_equal:
            return np.arange(len(self)) if self.unit is None else numbered(self.unit)
        distinct = numbered(self.keys())
        return distinct if self.unit is None else joined_blocks(distinct, numbered(self.unit))

    def coin_split(self, seed: int) -> tuple[Records, Records]:
        """Two sides by a fair coin per block (see blocks): randomized membership."""
        blocks = self.blocks()
        heads = np.random.default_rng(seed).random(blocks.max() + 1) < 0.5
        sides = heads[blocks]
        if sides.all() or not sides.any():
            raise RecordsError(
                f"All {len(self)} {self.name} fell on one side, being {len(heads)} different "
                "records or units; a split needs more of them"
            )
        return self.take(np.flatnonzero(sides)), self.take(np.flatnonzero(~sides))

    def sample(self, n: int, seed: int) -> Records:
        """n records drawn without replacement, or a few more: blocks are kept whole."""
        if n < 1:
            raise RecordsError(f"A sample of {n} {self.name} is empty; ask for 1 or more")
        if n >= len(self):
            return self
        blocks = self.blocks()
        order = np.random.default_rng(seed).permutation(blocks.max() + 1)
        enough = np.searchsorted(np.cumsum(np.bincount(blocks)[order]), n) + 1
        return self.take(np.flatnonzero(np.isin(blocks, order[:enough])))


def pool(members: Records, nonmembers: Records) -> tuple[Records, NDArray[np.bool_]]:
    """Both sides as one pool, with membership (n,): true for the members, who come first."""
    if (members.unit is None) != (nonmembers.unit is None):
        raise RecordsError("Only one side has units; give the unit for both sides, or for neither")
    unit = None
    if members.unit is not None and nonmembers.unit is not None:
        unit = joined_labels(members.unit, nonmembers.unit, "unit")
    together = Records._unchecked(
        X=joined_features(members.X, nonmembers.X),
        y=joined_labels(members.y, nonmembers.y, "label"),
        groups=joined_groups(members.groups, nonmembers.groups),
        unit=unit,
        name="records",
    )
    return together, np.arange(len(together)) < len(members)
