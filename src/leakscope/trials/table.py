"""The table of trials: what every model was trained on, and what each channel showed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError, ModelError
from leakscope.protocols import Bools, Floats, Stack
from leakscope.temporary import TemporaryFolder

# Models whose members agree with the target's, or differ from them, in more than this share of the
# records were drawn together with it.
ALIKE = 0.95


@dataclass(frozen=True, eq=False)
class StoredStack:
    """Observations of m models, (m, n, w), one file each, mapped into memory where they are read.

    Of a channel whose scope is the model, n is 1: what is seen is of no record in particular.

    A file is open only while it is read: a thousand models need no thousand open files.
    """

    files: Sequence[Path]
    _keeper: TemporaryFolder | None = field(default=None, repr=False)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """(m, n, w)."""
        return (len(self.files), *self._layout[1])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> Any:
        """What numpy would give for slices, numbers, masks or positions; it is in memory."""
        models, *inner = self._in_full(index if isinstance(index, tuple) else (index,))
        if isinstance(models, (int, np.integer)):
            number = range(len(self.files))[models]
            return np.array(self._open(number)[None][(0, *inner)])
        chosen = np.arange(len(self.files))[models]
        if isinstance(models, slice):
            return self._read(chosen, inner)
        if all(isinstance(one, (int, np.integer, slice)) for one in inner) and chosen.ndim == 1:
            return self._read(chosen, inner)
        # Positions of models beside positions of records are pairs: numpy knows the rules.
        needed, places = np.unique(chosen, return_inverse=True)
        return self._read(needed, [])[(places.reshape(chosen.shape), *inner)]

    def _in_full(self, index: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index without an ellipsis."""
        dots = [place for place, one in enumerate(index) if one is Ellipsis]
        if len(index) - len(dots) > 3 or len(dots) > 1 or any(one is None for one in index):
            raise IndexError(f"{index} is no index of models, records and numbers, {self.shape}")
        if dots:
            between = (slice(None),) * (4 - len(index))
            return (*index[: dots[0]], *between, *index[dots[0] + 1 :])
        return index or (slice(None),)

    def _read(self, models: NDArray[np.intp], inner: Sequence[Any]) -> Floats:
        """The same part of each of these models; no file is kept open for the next."""
        rest = tuple(inner)
        part: Floats = np.empty((len(models), *self._open(0)[rest].shape))
        for place, model in enumerate(models):
            part[place] = self._open(model)[rest]
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of it in memory."""
        if copy is False:
            raise ValueError("Files cannot be read without a copy in memory; leave out copy=False")
        everything = self[:]
        return np.asarray(everything, dtype=dtype)

    @cached_property
    def _layout(self) -> tuple[int, tuple[int, ...]]:
        """Where the numbers begin in each file, and their shape (n, w), from the first of them."""
        first = np.load(self.files[0], mmap_mode="r", allow_pickle=False)
        expected = first.offset + first.nbytes
        for model, file in enumerate(self.files):
            if file.stat().st_size != expected:
                shape = np.load(file, mmap_mode="r", allow_pickle=False).shape
                raise ModelError(
                    f"Model {model} (counting from 0) shows numbers of shape {shape} where model "
                    f"0 shows {first.shape}; use a recipe whose models are of one size on any "
                    "records, with tables encoded before they are divided"
                )
        return first.offset, first.shape

    def _open(self, model: int) -> Floats:
        # Of a thousand files, a thousand headers would take longer to read than the numbers.
        offset, shape = self._layout
        return np.memmap(self.files[model], np.float64, "r", offset, shape)


@dataclass(frozen=True, eq=False)
class Trials:
    """Many models of one recipe: the table every attack and every measure is folded from.

    roles (m, n): 0 left out, 1 member, 2 reference; observations: by channel (m, n, w), or
    (m, 1, w) where it shows something of the whole model; seeds: one per model. folder: where they
    are stored; a temporary one lasts as long as the table.
    """

    roles: NDArray[np.int8]
    observations: Mapping[str, Stack]
    seeds: Sequence[int]
    folder: Path | None = None
    _keeper: TemporaryFolder | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.roles)

    @property
    def membership(self) -> Bools:
        """Which records each model was trained on, (m, n)."""
        return np.asarray(self.roles == 1)

    def as_target(self, model: int) -> TargetTrial:
        """One model as the target of an attack, with the other models as its shadow models.

        The shadow models must not tell who is a member of the target. The complement of the
        target, its duplicates, and models that differ from either in at most 5 % of the records
        are left out: in ``random_halves`` the counts are then the same for all records.

        Parameters
        ----------
        model : int
            The number of the target, from 0; negative numbers count from the end.

        Returns
        -------
        target : TargetTrial
            What the target shows, its members, and the shadow models.

        Raises
        ------
        InputError
            There is no such model, no shadow model is left, or the design uses all records equally
            often, so that the models left tell the members of the target (``fixed_size``,
            ``leave_one_out``).

        Examples
        --------
        >>> import numpy as np
        >>> roles = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]], np.int8)
        >>> trials = Trials(roles, {"loss": np.zeros((4, 4, 1))}, seeds=range(4))
        >>> target = trials.as_target(0)
        >>> target.membership
        array([ True,  True, False, False])
        >>> target.shadows.roles
        array([[1, 0, 0, 1],
               [0, 1, 1, 0]], dtype=int8)
        """
        if not -len(self) <= model < len(self):
            raise InputError(
                f"There is no model {model} among {len(self)} models; give a number from 0 to "
                f"{len(self) - 1}"
            )
        membership = self.membership
        target = membership[model]
        kept = np.flatnonzero(~drawn_together(target, membership))
        if not len(kept):
            raise InputError(
                f"Model {model} of {len(self)} has no shadow models: all others have nearly the "
                "same members, or nearly none of them; train more models on random halves"
            )
        _refuse_balanced(membership, membership[kept], model)
        shadows = replace(
            self,
            roles=self.roles[kept],
            observations={name: _rows(stack, kept) for name, stack in self.observations.items()},
            seeds=[self.seeds[int(row)] for row in kept],
        )
        seen = {name: np.asarray(stack[model]) for name, stack in self.observations.items()}
        return TargetTrial(seen, target, shadows)


@dataclass(frozen=True, eq=False)
class TargetTrial:
    """One model of a table as the target of an attack.

    observations: what it shows by channel, (n, w); membership (n,): its members; shadows: models
    that were drawn independently of it.
    """

    observations: Mapping[str, Floats]
    membership: Bools
    shadows: Trials


def drawn_together(target: Bools, membership: Bools) -> Bools:
    """Which models (m,) have the members of a target (n,), or the others, but for a few records.

    Such shadow models give the target's members away through the number of models that know a
    record: on noise LiRA then has an AUC of .448 with 8 models. Records that are a member of all
    models or of none do not count.
    """
    constant = membership.all(axis=0) | ~membership.any(axis=0)
    varying = ~constant | (target != membership[0])
    if not varying.any():
        return np.ones(len(membership), dtype=bool)
    agree = np.array([np.mean(row[varying] == target[varying]) for row in membership])
    return np.asarray(np.maximum(agree, 1 - agree) > ALIKE)


def _refuse_balanced(membership: Bools, shadows: Bools, model: int) -> None:
    """Refuse shadow models (s, n) of a table (m, n) whose counts add up with the target's."""
    counts, left = (np.count_nonzero(rows, axis=0) for rows in (membership, shadows))
    varying = (counts > 0) & (counts < len(membership))
    # Of three models, every record that varies is in one or two, whatever the design.
    balanced = len(membership) > 3 and np.ptp(counts[varying]) <= 1
    if balanced and np.ptp(left[varying]) > 0:
        mine = membership[model] & varying
        raise InputError(
            f"The other models tell who is a member of model {model}: its members are in "
            f"{left[mine].mean():.2f} of them on average, the other records in "
            f"{left[varying & ~mine].mean():.2f}, because this design uses all records equally "
            "often; use random_halves or independent_halves"
        )


def _rows(stack: Stack, rows: NDArray[np.intp]) -> Stack:
    """What some models show; files stay files."""
    if isinstance(stack, StoredStack):
        return StoredStack([stack.files[row] for row in rows], stack._keeper)
    return np.asarray(stack[rows])
