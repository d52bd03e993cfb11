"""The cheap rivals of every defense: weight decay, stopping early, training longer, soft labels.

Two of them are the baselines that stand beside a defense (see docs/defenses.md): one that trains
for longer is compared with ``equal-compute``, and whatever lowers the accuracy in training with
``early-stop``. None has a formal guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from leakscope.defenses.networks import defended, network_recipe, not_for, refuse_own_loop
from leakscope.errors import InputError
from leakscope.models.sklearn import SklearnModel
from leakscope.options import magnitude, share, whole_number
from leakscope.protocols import Defense, Recipe
from leakscope.recipes import as_recipe
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import Tensor

    from leakscope.networks.stages import Stage

# scikit-learn's estimators with a penalty on the squares of their weights, by what holds it. C and
# alpha mean other things elsewhere, such as a smoothing of counts or a penalty on absolute values.
OF_SUMMED_LOSS = ("LogisticRegression", "LinearSVC", "LinearSVR", "SVC", "SVR")
OF_SQUARED_ERRORS = ("Ridge", "RidgeClassifier")
OF_MEAN_LOSS = ("SGDClassifier", "SGDRegressor")
OF_BATCHES = ("MLPClassifier", "MLPRegressor")
KNOWN = (*OF_SUMMED_LOSS, *OF_SQUARED_ERRORS, *OF_MEAN_LOSS, *OF_BATCHES)


@register("defense")
@dataclass(frozen=True)
class L2(Defense):
    """A penalty on the squares of the weights: ½·weight_decay·‖w‖² beside the mean loss.

    It comes on top of the one that a recipe has. For a torch network it is on all parameters; for
    scikit-learn's linear models, support vector machines and neural networks it is what C or alpha
    amounts to for as many records as a model has, and on all but the intercepts. The loss of ridge
    regression is the squared error.
    """

    name: ClassVar[str] = "l2"
    paper: ClassVar[str] = "Hoerl & Kennard 1970; Shokri et al. 2017, section VIII (as a defense)"
    example: ClassVar[str] = "l2:0.01"

    weight_decay: float

    def __post_init__(self) -> None:
        magnitude("weight_decay", self.weight_decay, above=0)

    def __str__(self) -> str:
        return f"{self.name}:{self.weight_decay:g}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """The same models with smaller weights."""
        made = as_recipe(recipe)
        if isinstance(made, TorchRecipe):
            return defended(made, self, weight_decay=made.weight_decay + self.weight_decay)
        if not isinstance(made, SklearnRecipe):
            raise InputError(
                f"The defense {str(self)!r} changes how a model is trained, which the recipe "
                f"{made.name!r} does not show; wrap it around the estimator or the TorchRecipe, "
                "before any other defense"
            )
        before = made.weight_decay if isinstance(made, WeightDecayed) else 0.0
        stronger(made.estimator, 1, self.weight_decay)  # refused now, if at all
        return WeightDecayed(
            f"{made.name}+{self}",
            made.estimator,
            made.prepare,
            recipe=made,
            weight_decay=before + self.weight_decay,
        )


@dataclass(frozen=True)
class WeightDecayed(SklearnRecipe):
    """An estimator whose penalty is stronger than it says, by the number of its records."""

    recipe: SklearnRecipe = field(kw_only=True)
    weight_decay: float = field(kw_only=True)

    def fit(self, records: Records, seed: int) -> SklearnModel:
        """One model, trained on all of the records."""
        from sklearn.base import clone

        settings = stronger(self.estimator, len(records), self.weight_decay)
        estimator = clone(self.estimator).set_params(**settings)
        return SklearnRecipe(self.name, estimator, self.prepare).fit(records, seed)


def stronger(estimator: Any, n: int, weight_decay: float) -> dict[str, float]:
    """What to set in an estimator, or the last step of a pipeline, of n records.

    It then has the penalty ½·weight_decay·‖w‖² beside the mean loss, on top of its own.
    """
    step, last = getattr(estimator, "steps", [("", estimator)])[-1]
    prefix, kind = step and f"{step}__", type(last).__name__
    if kind not in KNOWN or not _penalizes_squares(last):
        raise InputError(
            f"The defense 'l2' knows no penalty on squares to strengthen in a {kind} with these "
            f"options; use a TorchRecipe, or with such a penalty one of {', '.join(KNOWN)}"
        )
    options = last.get_params(deep=False)
    if kind in OF_SUMMED_LOSS:  # C·Σ loss + ½‖w‖²
        return {f"{prefix}C": 1 / (1 / options["C"] + n * weight_decay)}
    if kind in OF_SQUARED_ERRORS:  # Σ (y − ŷ)² + alpha·‖w‖²
        more = n * weight_decay / 2
    elif kind in OF_MEAN_LOSS:  # mean loss + ½·alpha·‖w‖²
        more = weight_decay
    else:  # mean loss of a batch of b records + ½·alpha/b·‖w‖²
        batch = 200 if options["batch_size"] == "auto" else options["batch_size"]
        more = (n if options["solver"] == "lbfgs" else min(batch, n)) * weight_decay
    return {f"{prefix}alpha": options["alpha"] + more}


def _penalizes_squares(estimator: Any) -> bool:
    """Whether one of these names is scikit-learn's own, and its penalty not on absolute values."""
    if not type(estimator).__module__.startswith("sklearn."):
        return False
    options = estimator.get_params(deep=False)
    penalty = options.get("penalty", "l2")
    return bool(penalty == "l2" or (penalty == "deprecated" and not options["l1_ratio"]))


@register("defense")
@dataclass(frozen=True)
class EarlyStopping(Defense):
    """A network stops learning after so many epochs, or at an accuracy in training.

    epoch: the last one; without it, and without accuracy, it is half of the recipe's. accuracy:
    training ends after the first epoch with this share of right predictions in training, so that a
    defended network and an undefended one of the same accuracy can be compared. Epochs that another
    defense adds, such as those of a pruning, stay.
    """

    name: ClassVar[str] = "early-stop"
    paper: ClassVar[str] = "Prechelt 1998; Song & Mittal 2021 (as a defense)"
    example: ClassVar[str] = "early-stop:12"
    networks: ClassVar[bool] = True

    epoch: int = 0
    accuracy: float | None = None

    def __post_init__(self) -> None:
        whole_number("epoch", self.epoch, 0)
        if self.accuracy is not None and magnitude("accuracy", self.accuracy, above=0) > 1:
            raise InputError(f"The option accuracy must be at most 1, got {self.accuracy!r}")

    def __str__(self) -> str:
        after = f":{self.epoch}" if self.epoch else ""
        at = "" if self.accuracy is None else f" (accuracy {self.accuracy:g})"
        return f"{self.name}{after}{at}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """The same networks, trained for a shorter time."""
        made, changes = network_recipe(recipe, self), dict[str, Any]()
        if self.epoch or self.accuracy is None:
            changes["epochs"] = self.epoch or made.epochs // 2
            if not 0 < changes["epochs"] < made.epochs:
                raise InputError(
                    f"The defense {str(self)!r} would not stop the recipe {made.name!r} early, "
                    f"whose epochs are {made.epochs}; stop at an earlier epoch, or train for longer"
                )
        if self.accuracy is not None:
            changes["stop_at_accuracy"] = self.accuracy
            if made.stop_at_accuracy is not None and made.stop_at_accuracy <= self.accuracy:
                raise InputError(
                    f"The defense {str(self)!r} would not stop the recipe {made.name!r} early, "
                    f"which stops at an accuracy of {made.stop_at_accuracy:g}; give a lower one"
                )
        return defended(made, self, **changes)


@register("defense")
@dataclass(frozen=True)
class EqualCompute(Defense):
    """No defense: a network learns for the extra epochs that a defense would take.

    The baseline for defenses that train for longer, as pruning does. extra: how many epochs follow
    the recipe's training, in a part of their own as a defense's would, with a new start of the
    optimizer and no early end.
    """

    name: ClassVar[str] = "equal-compute"
    paper: ClassVar[str] = "a baseline for Wang et al. 2020"
    example: ClassVar[str] = "equal-compute:33"
    networks: ClassVar[bool] = True

    extra: int

    def __post_init__(self) -> None:
        whole_number("extra", self.extra, 1)

    def __str__(self) -> str:
        return f"{self.name}:{self.extra}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """The same networks, trained for longer."""
        made = network_recipe(recipe, self)
        refuse_own_loop(made, self, "further epochs")
        return defended(made, self, course=Longer(made.course, self.extra))


@dataclass(frozen=True)
class Longer:
    """A course with more epochs after it."""

    before: Callable[[Stage], None] | None
    extra: int

    def __call__(self, stage: Stage) -> None:
        """The course before, then so many epochs."""
        from leakscope.networks.stages import plainly

        (self.before or plainly)(stage)
        stage.train(epochs=self.extra, stops=False)


@register("defense")
@dataclass(frozen=True)
class LabelSmoothing(Defense):
    """A network learns labels that are a little uncertain: alpha of each is shared by all classes.

    The target of a record of class c among k classes is 1 − alpha + alpha/k for c and alpha/k for
    the others. Two combine to 1 − (1 − alpha₁)(1 − alpha₂).
    """

    name: ClassVar[str] = "smooth-labels"
    paper: ClassVar[str] = "Szegedy et al. 2016, section 7"
    example: ClassVar[str] = "smooth-labels:0.1"
    networks: ClassVar[bool] = True

    alpha: float

    def __post_init__(self) -> None:
        share("alpha", self.alpha)

    def __str__(self) -> str:
        return f"{self.name}:{self.alpha:g}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """The same networks, trained on smoothed labels."""
        made = network_recipe(recipe, self)
        loss, alpha = made.loss, self.alpha
        if isinstance(loss, SmoothedCrossEntropy):
            alpha = 1 - (1 - loss.alpha) * (1 - alpha)
        elif loss not in (None, "cross_entropy"):
            raise InputError(
                f"The defense {str(self)!r} smooths the labels of the cross entropy, and the "
                f"recipe {made.name!r} has the loss {loss!r}; leave the loss out"
            )
        return defended(made, self, loss=SmoothedCrossEntropy(alpha))


@dataclass(frozen=True)
class SmoothedCrossEntropy:
    """The mean log-loss of logits (n, k) for class numbers y (n,) of which alpha is shared."""

    alpha: float

    def __call__(self, outputs: Tensor, y: Tensor) -> Tensor:
        """One number; a single output, (n, 1) or (n,), is the logit of class 1 against class 0."""
        from torch.nn import functional

        from leakscope.networks.endings import kind_of_outputs

        # By the last operation alone: it is asked of every batch.
        if y.is_floating_point() or kind_of_outputs(outputs[:0]) not in {"logits", None}:
            raise not_for("smooth-labels")
        if outputs.ndim == 1 or outputs.shape[1] == 1:
            targets = (1 - self.alpha) * y + self.alpha / 2
            logits = outputs.reshape(len(y))
            return functional.binary_cross_entropy_with_logits(logits, targets.to(logits))
        return functional.cross_entropy(outputs, y, label_smoothing=self.alpha)
