"""MemGuard: answers changed a little, so that a network which infers membership cannot tell.

Jia et al. (2019, section 4). The defender trains an inference network on what its own model
answers for members and for reference records. For every query it looks for noise on the logits that
brings this network to the other side of ½, keeps the label and changes the answer little (phase I);
and shows the changed answer with the largest probability for which the expected distortion, in the
1-norm, stays within the budget (phase II). The same question has the same answer whenever it is
asked, so that asking again averages nothing out.

What is fitted here belongs to one model, its members and its reference records. So MemGuard wraps
recipes: each model it makes comes with a guard of its own, trained on its records of role 2, and so
do the shadow models of an adversary who knows of it. ``MemGuard.fitted`` gives the guard of a model
that is there already; it wraps channels, like the other releases.

It promises nothing. The label is kept, and with it all that labels tell. Noise that just crosses to
the other side turns the order of the answers round, and an order turned round is one: of a forest
on 400 records the inference network's AUC went from .98 to .06 at a distortion of 1, which an
adversary who knows of it reads backwards (Song & Mittal 2021 regain much in other ways). Whoever
knows the seed can tell which answers were changed: a model that is released in earnest needs a
secret one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.defenses.reference import refuse_missing, refuse_shared
from leakscope.defenses.release import Release, ReleasedModel
from leakscope.errors import MissingExtraError, ModelError
from leakscope.options import magnitude, whole_number
from leakscope.probabilities import clipped_log
from leakscope.protocols import AdjustableModel, Bools, Defense, Floats, Model, Recipe
from leakscope.recipes import as_recipe
from leakscope.records import Records
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import Tensor

# Of the inference network.
HIDDEN = (256, 128, 64)
RATE, BATCH = 1e-3, 64
# Of the descent: how far a step goes, and how much a changed label counts.
STEP, LABEL = 0.1, 10.0
# What the distortion counts, larger and larger as long as the other side can still be reached.
DISTORTIONS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
# Answers that are looked at together.
ROWS = 1024
# Two answers are to the same question if they agree in so many digits.
DIGITS = 9
# Keeps what is drawn here apart from whatever else is drawn from a model's seed.
STREAM = 0x67756172

PAPER = "Jia et al. 2019, section 4"


@register("defense")
@dataclass(frozen=True)
class MemGuard(Defense):
    """Noise on the probabilities that misleads an inference network and keeps the label.

    distortion: how far an answer may be from the model's own on average, in the 1-norm, which is at
    most 2. epochs: of the training of the inference network. steps: of the search for the noise.
    Needs reference records, those of role 2.
    """

    name: ClassVar[str] = "memguard"
    paper: ClassVar[str] = PAPER
    example: ClassVar[str] = "memguard:0.1"
    needs_reference: ClassVar[bool] = True

    distortion: float = 1.0
    epochs: int = 50
    steps: int = 100

    def __post_init__(self) -> None:
        magnitude("distortion", self.distortion)
        whole_number("epochs", self.epochs, 1)
        whole_number("steps", self.steps, 1)

    def __str__(self) -> str:
        return f"{self.name}:{self.distortion:g}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """A recipe of the same models, each behind a guard of its own.

        recipe: a Recipe, or what ``as_recipe`` makes one of.
        """
        recipe = as_recipe(recipe)
        return GuardedRecipe(f"{recipe.name}+{self}", recipe, self, recipe.together)

    def fitted(self, model: Model, members: Records, reference: Records, seed: int = 0) -> Guard:
        """The guard of a model: a defense around channels, as top-k and rounding are.

        members: the records that it was trained on; reference: others like them, which are not to
        be those that attacks are judged on.
        """
        if model.task != "classification":
            raise ModelError(
                f"{model.name} predicts numbers, and the defense {str(self)!r} is for "
                "probabilities; use it for a classifier"
            )
        layers = _inference_network(
            model.predict_proba(members.X), model.predict_proba(reference.X), self.epochs, seed
        )
        return Guard(self.distortion, self.steps, seed, layers)


@dataclass(frozen=True, eq=False)
class Guard(Release):
    """Answers of one model, changed against its own inference network; see MemGuard.

    layers: the weights (out, in) and biases (out,) of the inference network.
    """

    name: ClassVar[str] = MemGuard.name
    paper: ClassVar[str] = PAPER
    example: ClassVar[str] = MemGuard.example

    distortion: float
    steps: int
    seed: int
    layers: tuple[tuple[Floats, Floats], ...]

    def __str__(self) -> str:
        return f"{self.name}:{self.distortion:g}"

    def released(self, probabilities: Floats) -> Floats:
        """(n, k), rows that sum as they did, each with its largest where it was."""
        shown = np.array(probabilities, dtype=np.float64)
        for start in range(0, len(shown), ROWS):
            rows = slice(start, start + ROWS)
            shown[rows] = self._some(shown[rows])
        return shown

    def suspicion(self, probabilities: Floats) -> Floats:
        """How sure the inference network is that answers (n, k) are of members, (n,)."""
        import torch

        logits = _logits(torch.from_numpy(np.asarray(probabilities)), _tensors(self.layers))
        return np.asarray(torch.sigmoid(logits).numpy())

    def _some(self, own: Floats) -> Floats:
        changed = _misleading(own, self.layers, self.steps)
        distance = np.abs(changed - own).sum(axis=1)
        before, after = (np.abs(self.suspicion(one) - 0.5) for one in (own, changed))
        # Phase II: as often as the budget allows, and only where it helps.
        with np.errstate(divide="ignore", invalid="ignore"):
            often = np.where(after < before, np.minimum(1.0, self.distortion / distance), 0.0)
        return np.where((self._drawn(own) < often)[:, None], changed, own)

    def _drawn(self, own: Floats) -> Floats:
        """A number from 0 to 1 for each answer (n,), always the same for the same answer."""
        key = self.seed.to_bytes(16, "little")
        rounded = np.round(own, DIGITS) + 0.0  # no negative zeros
        digests = (hashlib.blake2b(row.tobytes(), key=key, digest_size=8) for row in rounded)
        return np.array([int.from_bytes(one.digest(), "little") / 2**64 for one in digests])


class GuardedModel(ReleasedModel):
    """A model behind its guard: what is asked of it is answered by the guard."""

    def with_parameters(self, vector: Floats) -> Model:
        """The model with these parameters (p,), behind the same guard."""
        if not isinstance(self.wrapped, AdjustableModel):
            raise ModelError(f"{self.name} cannot be had with other parameters")
        return GuardedModel(self.wrapped.with_parameters(vector), self.defense)

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedModel, (self.wrapped, self.defense)  # without the answers it remembers


@dataclass(frozen=True)
class GuardedRecipe(Recipe):
    """A recipe whose models answer through a guard that was fitted to each of them."""

    name: str
    recipe: Recipe
    defense: MemGuard
    together: int = 1

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n): that of the recipe inside, behind its guard."""
        refuse_missing(roles, self.defense)
        refuse_shared(records, roles)
        models = self.recipe.fit_many(records, roles, seeds)
        return [
            self._guarded(model, records, row, seed)
            for model, row, seed in zip(models, roles, seeds, strict=True)
        ]

    def _guarded(
        self, model: Model, records: Records, row: NDArray[np.int8], seed: int
    ) -> GuardedModel:
        members, reference = (records.take(np.flatnonzero(row == role)) for role in (1, 2))
        return GuardedModel(model, self.defense.fitted(model, members, reference, seed))


def _inference_network(
    members: Floats, others: Floats, epochs: int, seed: int
) -> tuple[tuple[Floats, Floats], ...]:
    """A network that tells answers for members (a, k) from others (b, k), as many of each.

    It is given an answer's probabilities in order of size.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("The defense 'memguard'", "torch") from error

    from leakscope.networks.mlp import MLP
    from leakscope.networks.optimizers import Updates
    from leakscope.networks.seeding import Purpose, drawing_from, generator, repeatable
    from leakscope.networks.training import Training, train

    stream = np.random.SeedSequence(seed, spawn_key=(STREAM,))
    rng, own = np.random.default_rng(stream), int(stream.generate_state(1)[0])
    n = min(len(members), len(others))
    some = [side[rng.permutation(len(side))[:n]] for side in (others, members)]
    X = torch.from_numpy(np.concatenate(some)).sort(dim=1, descending=True).values
    y = torch.arange(2).repeat_interleave(n)
    with repeatable():
        with drawing_from(generator(own, Purpose.WEIGHTS)):
            network = MLP([X.shape[1], *HIDDEN, 1], "relu").double()
        settings = Training(Updates(lr=RATE), epochs, BATCH)
        train(network, X, y, settings, order=generator(own, Purpose.ORDER))
    return tuple(
        (layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in network.linears
    )


def _tensors(layers: Sequence[tuple[Floats, Floats]]) -> list[tuple[Tensor, Tensor]]:
    import torch

    return [(torch.from_numpy(weights), torch.from_numpy(biases)) for weights, biases in layers]


def _logits(probabilities: Tensor, layers: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """The logit of membership of answers (n, k), (n,)."""
    from torch.nn import functional

    h = probabilities.sort(dim=1, descending=True).values
    for weights, biases in layers[:-1]:
        h = functional.relu(functional.linear(h, weights, biases))
    return functional.linear(h, *layers[-1]).squeeze(1)


def _misleading(own: Floats, layers: Sequence[tuple[Floats, Floats]], steps: int) -> Floats:
    """Phase I: answers near these (n, k) on the other side of ½, of the same label.

    Where there is none it is the answer itself.
    """
    import torch

    from leakscope.networks.seeding import repeatable

    found, left = own.copy(), np.arange(len(own))
    with repeatable():
        network = _tensors(layers)
        for weight in DISTORTIONS:
            start = torch.from_numpy(own[left])
            changed, reached = _descend(start, clipped_log(own[left]), network, weight, steps)
            found[left[reached]] = changed[reached]
            left = left[reached]
            if not len(left):
                break
    return found


def _descend(
    start: Tensor,
    logits: Floats,
    network: Sequence[tuple[Tensor, Tensor]],
    weight: float,
    steps: int,
) -> tuple[Floats, Bools]:
    """The first answers on the other side on the way down (n, k), and where they were reached."""
    import torch

    z, label = torch.from_numpy(logits), start.argmax(dim=1)
    side = _logits(start, network)
    is_label = torch.nn.functional.one_hot(label, z.shape[1]).bool()
    found, reached = start.clone(), torch.zeros(len(z), dtype=torch.bool)
    noise = torch.zeros_like(z)
    for _ in range(steps):
        noise.requires_grad_()
        moved = z + noise
        answers = moved.softmax(dim=1)
        suspicion = _logits(answers, network)
        largest = moved.masked_fill(is_label, -torch.inf).max(dim=1).values
        behind = (largest - moved[is_label]).relu()
        there = (suspicion * side <= 0) & (answers.argmax(dim=1) == label) & ~reached
        found[there], reached = answers.detach()[there], reached | there
        if reached.all():
            break
        far = (answers - start).abs().sum(dim=1)
        (slope,) = torch.autograd.grad(
            (suspicion.abs() + LABEL * behind + weight * far).sum(), noise
        )
        size = slope.norm(dim=1, keepdim=True).clamp_min(1e-12)
        noise = noise.detach() - STEP * slope / size
    return found.numpy(), reached.numpy()
