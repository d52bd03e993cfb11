"""Output perturbation: Gaussian noise on the parameters of a trained model before it is released.

What the noise promises, and what it does not. If replacing one record moves the parameter vector by
at most ``sensitivity``, the noised vector is (ε, δ)-differentially private (Dwork & Roth 2014;
Balle & Wang 2018), and so is whatever is computed from it. Nothing else that was fitted on the
members is covered: a scaler or an encoder before the estimator, or a search for its settings. Nor
are the labels: which classes there are is released as it is, so that the promise is for training
sets that all have the same classes, as they do where the classes are known beforehand and common.
``budget`` therefore makes no promise for recipes that fit such things. The sensitivity is taken on
trust: it is proven by whoever gives it (see ``leakscope.leakage.ridge_sensitivity`` and
``logistic_sensitivity``), and measuring it on data proves nothing.

The noise comes from the seed of the model, so that trials can be repeated: whoever knows the seed
can take the noise off again. A model that is released in earnest needs a secret seed, such as
``secrets.randbits(32)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError, ModelError
from leakscope.leakage.mechanism import gaussian_epsilon, gaussian_sigma
from leakscope.options import magnitude, whole_number
from leakscope.protocols import AdjustableModel, Defense, Model, Recipe
from leakscope.recipes import as_recipe
from leakscope.records import Records
from leakscope.registry import register

# Where the estimators are whose vector is all that they need of their training, once it is set.
VECTORS = ("discriminant_analysis", "linear_model", "neural_network", "svm")

# Keeps the noise apart from whatever else is drawn from a model's seed.
STREAM = 0x6E6F6973


@register("defense")
@dataclass(frozen=True)
class OutputPerturbation(Defense):
    """Gaussian noise on every parameter of the trained model.

    Give ``sigma``, the standard deviation of the noise; or ``epsilon``, ``delta`` and
    ``sensitivity``, from which the smallest sufficient noise follows. With a sigma, delta and
    sensitivity say what ε it amounts to.
    """

    name: ClassVar[str] = "noise"
    paper: ClassVar[str] = "Chaudhuri et al. 2011 (output perturbation); Balle & Wang 2018"
    example: ClassVar[str] = "noise:0.1"

    sigma: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    sensitivity: float | None = None

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.epsilon is None):
            raise InputError(
                f"Noise needs either sigma or epsilon, got {self.sigma!r} and {self.epsilon!r}; "
                "give one of the two"
            )
        told = (self.delta is not None) + (self.sensitivity is not None)
        if told == 1 or (self.epsilon is not None and told == 0):
            raise InputError(
                f"A promise of privacy needs delta and sensitivity, got {self.delta!r} and "
                f"{self.sensitivity!r}; give both, or sigma alone"
            )
        if self.sigma is not None:
            magnitude("sigma", self.sigma, above=0)
        self._epsilon_and_sigma()  # the other values are checked where they are used

    def __str__(self) -> str:
        return f"{self.name}:{self.scale:g}"

    @property
    def scale(self) -> float:
        """The standard deviation of the noise on each parameter."""
        return self._epsilon_and_sigma()[1]

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """A recipe of the same models with noise on their parameters.

        recipe: a Recipe, or what ``as_recipe`` makes one of. An epsilon that covers less than what
        the recipe's models show is warned of.
        """
        recipe = as_recipe(recipe)
        if self.epsilon is not None and self.budget(recipe, 1) is None:
            warnings.warn(
                f"The noise covers the parameters alone, and models of the recipe {recipe.name!r} "
                "may show more that was fitted on their members, such as a scaler: epsilon is no "
                "promise for them; use one of scikit-learn's estimators with prepare=False and "
                "nothing fitted before it",
                stacklevel=2,
            )
        return NoisyRecipe(f"{recipe.name}+{self}", recipe, self.scale, recipe.together)

    def budget(self, recipe: Recipe, n: int) -> tuple[float, float] | None:
        """The (ε, δ) of a released model, whatever n; None where the noise does not cover it all.

        It covers all where the recipe is one of scikit-learn's own estimators that is given its
        records as they are (prepare=False), alone or after steps that fit nothing, such as a
        Normalizer, and searches for no setting; a classifier's for training sets that all have
        the same classes.
        """
        whole_number("n", n, 1)
        if self.delta is None or not _is_all_parameters(recipe):
            return None
        epsilon, _ = self._epsilon_and_sigma()
        assert epsilon is not None
        return epsilon, self.delta

    def _epsilon_and_sigma(self) -> tuple[float | None, float]:
        """Each from the other, where the promise is known."""
        if self.sigma is None:
            assert self.epsilon is not None
            assert self.delta is not None
            assert self.sensitivity is not None
            return self.epsilon, gaussian_sigma(self.epsilon, self.delta, self.sensitivity)
        if self.delta is None or self.sensitivity is None:
            return None, self.sigma
        return gaussian_epsilon(self.sigma, self.delta, self.sensitivity), self.sigma


@dataclass(frozen=True)
class NoisyRecipe(Recipe):
    """A recipe whose models are released with noise N(0, sigma²) on each parameter.

    The same model with another sigma gets the same noise, larger or smaller.
    """

    name: str
    recipe: Recipe
    sigma: float
    together: int = 1

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n): that of the recipe inside for its seed, and noise."""
        models = self.recipe.fit_many(records, roles, seeds)
        return [self._noised(model, seed) for model, seed in zip(models, seeds, strict=True)]

    def _noised(self, model: Model, seed: int) -> Model:
        if "parameters" not in model.abilities or not isinstance(model, AdjustableModel):
            raise ModelError(
                f"The recipe {self.recipe.name!r} makes a {model.name}, which has no parameters "
                "to add noise to; use a linear model or a neural network"
            )
        vector = model.parameters()
        # Noise around noise is drawn anew: the same twice would be neither independent nor N(0, 2).
        stream = np.random.SeedSequence(seed, spawn_key=(STREAM, _layers(self.recipe)))
        noise = np.random.default_rng(stream).normal(size=vector.shape)
        return model.with_parameters(vector + self.sigma * noise)


def _layers(recipe: Recipe | None) -> int:
    """How many times noise is added in a recipe already, whatever else is wrapped around it."""
    if recipe is None:
        return 0
    return isinstance(recipe, NoisyRecipe) + _layers(getattr(recipe, "recipe", None))


def _is_all_parameters(recipe: Recipe) -> bool:
    """Whether a model of this recipe is its parameter vector and nothing else of its members."""
    from sklearn.utils import get_tags

    from leakscope.recipes.sklearn import SklearnRecipe

    if isinstance(recipe, NoisyRecipe):
        return _is_all_parameters(recipe.recipe)
    if not isinstance(recipe, SklearnRecipe):
        return False
    *before, (_, last) = getattr(recipe.estimator, "steps", [("", recipe.estimator)])
    prepared = recipe.prepare if hasattr(recipe.estimator, "steps") else recipe.prepare is not False
    # Of another library's estimator it is not known what else it keeps of its training.
    own = type(last).__module__.startswith(tuple(f"sklearn.{one}" for one in VECTORS))
    single = not hasattr(last, "estimator") and "cv" not in last.get_params(deep=False)
    bare = all(step == "passthrough" or not get_tags(step).requires_fit for _, step in before)
    return own and single and bare and not prepared
