"""Pruning against membership inference, and the search for how much to prune.

Wang et al. 2020 prune a network's weights by ADMM so that it fits its members less closely, and
among several numbers of weights choose those with which an inference model gains least (Algorithm
1). What that does to a network depends on what it is compared with, because pruning trains on: an
equally long training without it leaks more, an earlier end of training often less. It promises
nothing about privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.defenses.networks import defended, network_recipe, refuse_own_loop
from leakscope.defenses.reference import refuse_shared
from leakscope.errors import InputError, ModelError
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Bools, Defense, Model, Recipe
from leakscope.records import Records
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import nn

    from leakscope.networks.pruning import Schedule
    from leakscope.networks.stages import Stage
    from leakscope.recipes.torch import TorchRecipe

# What an inference model gains from a model: of its members, and of records like them. A number.
Gain = Callable[[Model, Records, Records], float]

# The gain where members and others cannot be told apart (Wang et al. 2020, Eq. 10).
NO_GAIN = -math.log(4)


@register("defense")
@dataclass(frozen=True)
class Pruning(Defense):
    """Most weights set to zero while the network is trained on, by ADMM, and then trained again.

    ratio: how many times fewer weights of linear and convolutional layers are left. epochs: of each
    round of ADMM; rhos: the weight ρ of its penalty in each, rising. retrain: epochs of the pruned
    network. protect: whether the first and the last layer keep more than their share, see
    networks.pruning.layer_budgets. budgets: how many weights each layer keeps, by its path in the
    network, in place of what follows from ratio and protect; layers without one are not pruned.
    rate, retrain_rate: how many times the recipe's learning rate, while it is pruned and while it
    is trained again.
    """

    name: ClassVar[str] = "prune"
    paper: ClassVar[str] = "Wang et al. 2020, Algorithm 1; Zhang et al. 2018 (ADMM)"
    example: ClassVar[str] = "prune:16"
    networks: ClassVar[bool] = True

    ratio: float = 16
    epochs: int = 8
    retrain: int = 15
    rhos: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    protect: bool = True
    budgets: Mapping[str, int] | None = field(default=None, hash=False)
    rate: float = 1.0
    retrain_rate: float = 1.0

    def __post_init__(self) -> None:
        magnitude("ratio", self.ratio, least=1)
        magnitude("rate", self.rate, above=0)
        magnitude("retrain_rate", self.retrain_rate, above=0)
        whole_number("epochs", self.epochs, 1)
        whole_number("retrain", self.retrain, 0)
        for rho in self.rhos:
            magnitude("rhos", rho, above=0)
        if not self.rhos or list(self.rhos) != sorted(self.rhos):
            raise InputError(
                f"The option rhos must be one or more rising numbers, got {self.rhos!r}"
            )
        if self.budgets is not None and not self.budgets:
            raise InputError("The option budgets names no layer; name one, or leave it out")
        for path, number in (self.budgets or {}).items():
            whole_number(f"budgets[{path!r}]", number, 0)

    def __str__(self) -> str:
        others = []
        if self.budgets is not None:
            of = f"{len(self.budgets)} layer{'s'[: len(self.budgets) - 1]}"
            others.append(f"{sum(self.budgets.values())} weights of {of}")
        elif not self.protect:
            others.append("ends not protected")
        for one in fields(self)[1:3]:
            if (value := getattr(self, one.name)) != one.default:
                others.append(f"{one.name} {value}")
        if self.rhos != Pruning.rhos:
            others.append(f"rho {', '.join(f'{rho:g}' for rho in self.rhos)}")
        if (self.rate, self.retrain_rate) != (Pruning.rate, Pruning.retrain_rate):
            others.append(f"rate {self.rate:g}, then {self.retrain_rate:g}")
        share = "" if self.budgets is not None else f":{self.ratio:g}"
        return f"{self.name}{share}" + (f" ({'; '.join(others)})" if others else "")

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """A recipe whose networks are pruned after their training."""
        made = network_recipe(recipe, self)
        refuse_own_loop(made, self, "a penalty and further epochs")
        return defended(made, self, course=PruningCourse(self, made.course))

    def kept(self, module: nn.Module) -> dict[str, int]:
        """How many weights each layer of a network keeps; what cannot be is refused."""
        from leakscope.networks.pruning import checked_budgets, layer_budgets, prunable

        sizes = {path: weight.numel() for path, weight in prunable(module).items()}
        if self.budgets is not None:
            return checked_budgets(sizes, self.budgets)
        return layer_budgets(sizes, self.ratio, self.protect)

    @property
    def schedule(self) -> Schedule:
        """How long a network is pruned."""
        from leakscope.networks.pruning import Schedule

        return Schedule(self.rhos, self.epochs, self.retrain, self.rate, self.retrain_rate)


@dataclass(frozen=True)
class PruningCourse:
    """The training that there was before, and then the pruning."""

    pruning: Pruning
    before: Callable[[Stage], None] | None = None

    def __call__(self, stage: Stage) -> None:
        """Train the network of a stage; budgets that cannot be are refused before."""
        from leakscope.networks.pruning import prune
        from leakscope.networks.stages import plainly

        budgets = self.pruning.kept(stage.module)
        (self.before or plainly)(stage)
        prune(stage, budgets, self.pruning.schedule)

    def check(self, module: nn.Module) -> None:
        """Refuse budgets that the layers of a module do not have."""
        self.pruning.kept(module)


@dataclass(frozen=True)
class Candidate:
    """One model of a search.

    pruning: how it was pruned; None for the baseline, which was not. weights: how many of those
    that may be pruned are not zero. gain: what an inference model gains, clipped at −log 4, where
    nothing is gained. accuracy: on the reference records.
    """

    pruning: Pruning | None
    weights: int
    gain: float
    accuracy: float


@dataclass(frozen=True)
class BudgetSearch:
    """What a search over budgets found: the model without pruning, and every candidate.

    tolerance: how much less accurate than the baseline a candidate may be.
    """

    baseline: Candidate
    candidates: tuple[Candidate, ...]
    tolerance: float

    @property
    def allowed(self) -> tuple[Candidate, ...]:
        """The candidates that are accurate enough."""
        # Shares of a few thousand records: a difference of the tolerance itself is not too much.
        least = self.baseline.accuracy - self.tolerance - 1e-12
        return tuple(one for one in self.candidates if one.accuracy >= least)

    @property
    def chosen(self) -> Candidate | None:
        """Of those the one of least gain, of equal ones the most accurate; None if there is none.

        Without the condition a ruined model would win: it treats all records alike.
        """
        return min(self.allowed, key=lambda one: (one.gain, -one.accuracy), default=None)


def search_budgets(
    recipe: Recipe,
    records: Records,
    roles: NDArray[np.int8],
    seed: int,
    ratios: Sequence[float | Pruning],
    *,
    gain: Gain,
    tolerance: float = 0.01,
    pruning: Pruning | None = None,
) -> BudgetSearch:
    """Prune a network to several numbers of weights, for the least gain of an inference model.

    Wang et al. 2020, Algorithm 1. roles (n,): 1 for members, 2 for the reference records D′, on
    which gain and accuracy are measured; they must not be those that the chosen model is evaluated
    on afterwards, so that nobody may be on two sides. ratios: or whole prunings, where more is to
    be chosen than how much. gain(model, members, reference): larger where they are told apart more
    easily. pruning: all settings but the ratio. Every model is trained from the same seed.
    """
    template = replace(pruning or Pruning(), budgets=None)
    choices = [one if isinstance(one, Pruning) else replace(template, ratio=one) for one in ratios]
    everyone = np.ones(len(records), dtype=bool)
    (found,) = search_among(
        recipe, records, roles, seed, choices, [everyone], gain=gain, tolerance=tolerance
    )
    return found


def search_among(
    recipe: Recipe,
    records: Records,
    roles: NDArray[np.int8],
    seed: int,
    choices: Sequence[Pruning],
    among: Sequence[Bools],
    *,
    gain: Gain,
    tolerance: float = 0.01,
) -> list[BudgetSearch]:
    """Judge the same candidates several times, each time on some of the records alone.

    among: of each judgement a mask (n,) of the records on which gain and accuracy are measured;
    models are trained once, on all members. The rest is as in ``search_budgets``.
    """
    magnitude("tolerance", tolerance)
    if not choices:
        raise InputError("The search has no ratio to try; give one or more, such as [4, 8, 16]")
    _refuse_shape(records, roles)
    sides = [_sides(records, roles * mask) for mask in among]
    refuse_shared(records, roles[None])
    plain = network_recipe(recipe, choices[0])
    recipes = [plain, *(network_recipe(one.wrap_recipe(plain), one) for one in choices)]
    _refuse_numbers(plain, records)
    for made in recipes:
        made.rehearse(records)
    found = []
    for one, made in zip([None, *choices], recipes, strict=True):
        (model,) = made.fit_many(records, roles[None], [seed])
        found.append([_candidate(one, model, *pair, gain) for pair in sides])
    return [
        BudgetSearch(baseline, tuple(candidates), tolerance)
        for baseline, *candidates in zip(*found, strict=True)
    ]


def _refuse_shape(records: Records, roles: NDArray[np.int8]) -> None:
    """Refuse roles that are not one for each record."""
    if np.shape(roles) != (len(records),):
        raise InputError(
            f"The roles of {len(records)} {records.name} have the shape {np.shape(roles)}; give "
            "one for each"
        )


def _sides(records: Records, roles: NDArray[np.int8]) -> tuple[Records, Records]:
    """The members and the reference records that one model is judged on."""
    for role, what in ((1, "members"), (2, "reference records")):
        if not (roles == role).any():
            raise InputError(
                f"The search for budgets has no {what} (role {role}) to measure the gain on; give "
                f"some of the {len(records)} {records.name} this role"
            )
    return records.take(roles == 1), records.take(roles == 2)


def _refuse_numbers(recipe: TorchRecipe, records: Records) -> None:
    """Refuse a recipe whose networks have no accuracy."""
    from leakscope.recipes.tensors import table_of

    table = table_of(records, recipe.loss, recipe.classes, recipe.dtype)
    if table.task != "classification":
        raise InputError(
            f"The search for budgets needs the accuracy of a classifier, and the recipe "
            f"{recipe.name!r} predicts numbers; prune to a chosen ratio"
        )


def _candidate(
    pruning: Pruning | None, model: Model, members: Records, reference: Records, gain: Gain
) -> Candidate:
    """The figures of one model."""
    value = float(gain(model, members, reference))
    if not math.isfinite(value):
        raise ModelError(
            f"The gain of an inference model is {value} with {pruning or 'no pruning'}; let gain "
            "return a finite number"
        )
    accuracy = float(np.mean(model.predict(reference.X) == reference.y))
    return Candidate(pruning, _weights(model), max(value, NO_GAIN), accuracy)


def _weights(model: Model) -> int:
    """How many of the weights that may be pruned are not zero."""
    from leakscope.models.torch import TorchModel
    from leakscope.networks.pruning import prunable

    assert isinstance(model, TorchModel)  # a TorchRecipe has made it
    return sum(int(weight.count_nonzero()) for weight in prunable(model.module).values())
