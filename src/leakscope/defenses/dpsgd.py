"""DP-SGD: networks trained so that no single record changes them by much (Abadi et al. 2016).

What is promised: with and without any one record the weights have nearly the same distribution, up
to (ε, δ), and so has all that is computed from them. Who is a record is a row: of somebody with
several rows less is promised. The number of records counts as known, and so do the classes.

The promise holds for one training whose settings were chosen beforehand. It does not cover what
else looks at the records: a search for settings, a scaler fitted before, a penalty of another
defense, an epoch chosen by its accuracy. Such things are refused where they can be seen, whichever
is wrapped around the other.

Who is drawn, and the noise, come from the seed of the model, so that trials can be repeated:
whoever knows or guesses the seed can take the noise off again, and torch's generators keep 32 bits
of it, which can be tried out. A model that is released in earnest needs secure=True.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leakscope.defenses.networks import defended, network_recipe
from leakscope.errors import InputError, MissingExtraError
from leakscope.options import magnitude, one_of, share, whole_number
from leakscope.protocols import Defense, Recipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.registry import register

if TYPE_CHECKING:
    from leakscope.networks.private import PrivateTraining

# Beyond these opacus' numerical accountant fills the memory, or meets infinities and searches on.
PRV = (0.01, 100.0)


@register("defense")
@dataclass(frozen=True)
class DPSGD(Defense):
    """Gradients of single records are clipped and noise is added to every update: DP-SGD.

    epsilon, delta: at most this much is spent, by the settings of the recipe; delta should be well
    below one in the number of records. clip: the bound of the norm of a record's gradient.
    accountant: opacus' "rdp", or "prv", which is tighter and slower. secure: who is drawn and the
    noise come from the system's own randomness; such models cannot be trained again by their seed.
    convert: batch normalization, which no such training can have, becomes group normalization.

    Batches are drawn anew for each update, every record with the probability that makes the
    recipe's batch size their average, and there are as many updates as the recipe has.
    """

    name: ClassVar[str] = "dpsgd"
    paper: ClassVar[str] = "Abadi et al. 2016, Algorithm 1"
    example: ClassVar[str] = "dpsgd:6.28"
    networks: ClassVar[bool] = True

    epsilon: float = 6.28
    delta: float = 1e-5
    clip: float = 1.0
    accountant: Literal["rdp", "prv"] = "rdp"
    secure: bool = False
    convert: bool = False

    def __post_init__(self) -> None:
        magnitude("epsilon", self.epsilon, above=0)
        share("delta", self.delta)
        magnitude("clip", self.clip, above=0)
        one_of("accountant", self.accountant, ("rdp", "prv"))
        if self.accountant == "prv" and not PRV[0] <= self.epsilon <= PRV[1]:
            raise InputError(
                f"The accountant 'prv' takes an epsilon from {PRV[0]:g} to {PRV[1]:g}, got "
                f"{self.epsilon!r}; give another, or the accountant 'rdp'"
            )

    def __str__(self) -> str:
        return f"{self.name}:{self.epsilon:g}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """A recipe of the same networks, trained privately.

        Refused for recipes that do more with their records than train once on them.
        """
        plain = network_recipe(recipe, self)
        _refuse_unaccounted(plain)
        if plain.loop is not None:
            raise InputError(
                f"The recipe {plain.name!r} has a training loop of its own, in whose place "
                f"{str(self)!r} would stand; leave one of the two out"
            )
        changes: dict[str, Any] = {"loop": self._loop()}
        if self.convert:
            from leakscope.networks.clipping import ConvertedFactory

            changes["factory"] = ConvertedFactory(plain.factory)
        made = defended(plain, self, **changes)
        return PrivateRecipe(
            **{one.name: getattr(made, one.name) for one in fields(made) if one.init}
        )

    def budget(self, recipe: Recipe, n: int) -> tuple[float, float] | None:
        """The (ε, δ) that training on n records spends, by opacus' accountant, a little below ε.

        None for recipes that are refused.
        """
        whole_number("n", n, 1)
        if not isinstance(recipe, TorchRecipe) or recipe.loop is not None or _unaccounted(recipe):
            return None
        self._loop()
        from leakscope.networks.accounting import Sampling, epsilon_of

        trained = n - round(recipe.validation * n)  # what is held out is looked at by nothing
        sampling = Sampling.of(trained, recipe.batch_size, recipe.epochs)
        return epsilon_of(self.epsilon, self.delta, sampling, self.accountant), self.delta

    def _loop(self) -> PrivateTraining:
        try:
            from leakscope.networks.private import PrivateTraining
        except ImportError as error:
            raise MissingExtraError(f"The defense {str(self)!r}", "torch") from error
        return PrivateTraining(self.epsilon, self.delta, self.clip, self.accountant, self.secure)


@dataclass(frozen=True)
class PrivateRecipe(TorchRecipe):
    """A recipe of networks that are trained privately, and by nothing that is not accounted for.

    Whatever is wrapped around it makes another of its kind, which is checked again.
    """

    def __post_init__(self) -> None:
        _refuse_unaccounted(self)


def _refuse_unaccounted(recipe: TorchRecipe) -> None:
    if why := _unaccounted(recipe):
        raise InputError(f"The recipe {recipe.name!r} cannot be trained by DP-SGD: {why}")


def _unaccounted(recipe: TorchRecipe) -> str | None:
    """What a recipe does with its records that DP-SGD does not account for, and what to do."""
    if recipe.hooks is not None:
        return (
            "it has hooks, such as the penalties of min-max and pruning, whose gradients are not "
            "of one record, or others that look at the records; leave them out"
        )
    if recipe.course is not None:
        return (
            "it is trained in several parts, and the budget is for one; leave out what adds them, "
            "such as pruning or distillation"
        )
    if recipe.stop_at_accuracy is not None or recipe.stop_at_gap is not None:
        return (
            "it stops at an accuracy or at a gap, and looking at them is not accounted for; leave "
            "out stop_at_accuracy and stop_at_gap, and choose its epochs"
        )
    return None
