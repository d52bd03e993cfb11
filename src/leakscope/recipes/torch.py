"""Torch networks as recipes: made, seeded and trained for every model, small ones many at once.

torch is imported only when a network is made: the names of all recipes are known without it.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError, LeakscopeError, MissingExtraError, ModelError
from leakscope.models.answers import first_line
from leakscope.models.torch import Outputs, TorchModel
from leakscope.options import magnitude, one_of, share, whole_number
from leakscope.protocols import Model, Recipe
from leakscope.recipes.stacked import Begun, models_at_once, stacks, train_alone, train_stack
from leakscope.recipes.tensors import Table, table_of
from leakscope.records import Records

if TYPE_CHECKING:
    from torch import nn

    from leakscope.networks.stages import Loop, Stage
    from leakscope.networks.training import Beginning, Hooks, Training

DTYPES = ("float32", "float64")


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtraError("A recipe of a torch network", "torch") from error


@dataclass(frozen=True)
class TorchRecipe(Recipe):
    """A network made by a factory for each model, and trained by the settings that stand here.

    factory(inputs, classes): a new module that gives logits; inputs is the number of features of a
    record, or the shape of an image; classes is 1 where a number is predicted. momentum,
    weight_decay, decay: see networks.optimizers.Updates. loss: by default cross entropy for labels
    and squared error for numbers; or a function of outputs and targets.

    stop_at_gap, stop_at_accuracy: training ends after the first epoch with this gap between the
    accuracy in training and on validation records, or with this accuracy in training. validation:
    the share of its records that a model holds out for that; where it is 0, the records of role 2.
    hooks: see networks.training.Hooks; or a function that makes those of each model.

    classes: the labels in the order of the outputs, by default all that the records have. threads:
    the same seed gives the same weights for the same number. stack: how many plain networks (linear
    layers, tanh, ReLU, dropout) are trained at once at most; they differ by rounding from those
    trained alone.

    For defenses: course and loop, see networks.stages; recipe: the one that a defense has wrapped.
    """

    name: str
    factory: Callable[[Any, int], Any]
    optimizer: str = "adam"
    lr: float = 1e-3
    epochs: int = 50
    batch_size: int = 32
    momentum: float = 0.0
    weight_decay: float = 0.0
    decay: float = 0.0
    loss: str | Callable[[Any, Any], Any] | None = None
    stop_at_gap: float | None = None
    stop_at_accuracy: float | None = None
    validation: float = 0.0
    hooks: Hooks | Callable[[Beginning], Hooks] | None = None
    classes: tuple[Any, ...] | None = None
    dtype: str = "float32"
    threads: int = 1
    stack: int = 32
    course: Callable[[Stage], None] | None = None
    loop: Loop | None = None
    recipe: Recipe | None = None
    # Here for the fingerprint: what another release of torch trains is another model.
    torch: str = field(default_factory=_torch_version, init=False, repr=False)

    @property
    def together(self) -> int:  # type: ignore[override]  # it follows from the factory
        """How many models in a row are trained at once."""
        special = (self.hooks, self.course, self.loop)
        if self.stack == 1 or any(one is not None for one in special) or callable(self.loss):
            return 1
        return models_at_once(self.factory, whole_number("stack", self.stack, 1))

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n), each trained on the records of role 1."""
        return [*self._fitted(records, roles, seeds)]

    def fit(self, records: Records, seed: int) -> TorchModel:
        """One model, trained on all of the records."""
        return self._fitted(records, np.ones((1, len(records)), dtype=np.int8), [seed])[0]

    def rehearse(self, records: Records) -> None:
        """Refuse what would be refused once training has begun, and train nothing."""
        from leakscope.networks.seeding import Purpose, drawing_from, generator
        from leakscope.networks.stages import refuse

        with self._at_work(records):
            table = table_of(records, self.loss, self.classes, one_of("dtype", self.dtype, DTYPES))
            self._settings(table)
            with drawing_from(generator(0, Purpose.WEIGHTS)):
                module = self._made(table)
            self._check(module, table)
            for part in (self.loop, self.course):
                refuse(part, "check", module)

    def _fitted(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[TorchModel]:
        from leakscope.networks.stages import refuse

        with self._at_work(records):
            table = table_of(records, self.loss, self.classes, one_of("dtype", self.dtype, DTYPES))
            settings = self._settings(table)
            refuse(self.course, "check_roles", records, roles)
            begun = [self._begin(table, row, seed) for row, seed in zip(roles, seeds, strict=True)]
            for first in begun[:1]:
                self._check(first.module, table)
            for part, layers in stacks(begun, table, self.together):
                if layers is None:
                    for one in begun[part]:
                        train_alone(one, table, settings, self.hooks, self.course, self.loop)
                else:
                    train_stack(begun[part], layers, table, settings)
        return [_as_model(one.module, table) for one in begun]

    @contextmanager
    def _at_work(self, records: Records) -> Iterator[None]:
        """So many threads; what is raised meanwhile as one sentence."""
        from leakscope.networks.seeding import repeatable

        try:
            with repeatable(whole_number("threads", self.threads, 1)):
                yield
        except LeakscopeError:
            raise
        except Exception as error:
            raise ModelError(
                f"The recipe {self.name!r} could not be trained on the {len(records)} "
                f"{records.name}: {first_line(error)}"
            ) from error

    def _settings(self, table: Table) -> Training:
        from leakscope.networks.optimizers import Updates
        from leakscope.networks.training import Training

        for option in ("stop_at_gap", "stop_at_accuracy"):
            value = getattr(self, option)
            if value is not None and magnitude(option, value) > 1:
                raise InputError(f"The option {option} must be at most 1, got {value!r}")
        return Training(
            Updates(self.optimizer, self.lr, self.momentum, self.weight_decay, self.decay),
            whole_number("epochs", self.epochs, 1),
            whole_number("batch_size", self.batch_size, 1),
            table.loss,
            self.stop_at_gap,
            self.stop_at_accuracy,
        )

    def _begin(self, table: Table, row: NDArray[np.int8], seed: int) -> Begun:
        """A module with its first weights, and which records it is trained and validated on."""
        import torch

        from leakscope.networks.seeding import Purpose, drawing_from, generator

        members = torch.from_numpy(np.flatnonzero(row == 1))
        if not len(members):
            raise InputError("A row of the roles has no member; give each model a record")
        weights = generator(seed, Purpose.WEIGHTS)

        def fresh() -> nn.Module:
            with drawing_from(weights):
                return self._made(table)

        module = fresh()
        reference = torch.from_numpy(np.flatnonzero(row == 2))
        validation = reference if self.stop_at_gap is not None and len(reference) else None
        if self.validation:
            drawn = torch.randperm(len(members), generator=generator(seed, Purpose.HELD_OUT))
            held_out = self._held_out(len(members))
            validation, members = members[drawn[:held_out]], members[drawn[held_out:]]
        order, draws = generator(seed, Purpose.ORDER), generator(seed, Purpose.HOOKS)
        return Begun(module, members, reference, validation, order, weights, draws, fresh)

    def _made(self, table: Table) -> nn.Module:
        """A module of the factory, of the recipe's precision."""
        import torch

        module = self.factory(table.inputs, table.outputs)
        if not isinstance(module, torch.nn.Module):
            raise InputError(
                f"The factory of the recipe {self.name!r} made a {type(module).__name__}; let it "
                "make a torch module"
            )
        return module.to(getattr(torch, self.dtype))

    def _held_out(self, members: int) -> int:
        """How many of a model's records it is not trained on."""
        number = round(share("validation", self.validation) * members)
        if not 0 < number < members:
            raise InputError(
                f"The share {self.validation:g} of {members} records to hold out for validation "
                f"is {number} of them; give more records, or another share"
            )
        return number

    def _check(self, module: nn.Module, table: Table) -> None:
        """Ask one module once: what is wrong is said, by its layer, before it is trained."""
        from leakscope.networks.endings import kind_of_outputs
        from leakscope.networks.tracing import evaluating

        few = table.X[:2]
        _as_model(module, table, "auto").predict(few.numpy())
        with evaluating(module):
            if table.loss == "cross_entropy" and kind_of_outputs(module(few)) != "logits":
                raise InputError(
                    f"The networks of the recipe {self.name!r} give probabilities; let the factory "
                    "leave out the softmax, which is part of the loss, or give a loss of your own"
                )


def _as_model(module: nn.Module, table: Table, outputs: Outputs | None = None) -> TorchModel:
    named: Outputs = "logits" if table.loss == "cross_entropy" else "auto"
    return TorchModel(module, table.classes, table.task, outputs=outputs or named)
