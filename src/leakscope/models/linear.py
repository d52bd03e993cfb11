"""Linear scikit-learn models as one matrix, with the scaling before them multiplied in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, softmax

from leakscope.errors import NotApplicableError
from leakscope.models.feature_columns import copied
from leakscope.protocols import Floats

_PROBES = 32


def is_linear(estimator: Any) -> bool:
    """Whether a fitted model ends in coefficients; how it gets there is seen when it is asked."""
    return isinstance(getattr(_last(estimator), "coef_", None), np.ndarray)


def _last(estimator: Any) -> Any:
    """The model at the end of pipelines and searches."""
    best = getattr(estimator, "best_estimator_", None)
    if best is not None:
        return _last(best)
    return _last(estimator.steps[-1][1]) if hasattr(estimator, "steps") else estimator


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Logits, or the number predicted, as weights (k, d) times features plus offsets (k,).

    softmax: whether the probabilities of the model follow from these logits by a softmax, or by a
    logistic function where there is one logit for two classes.
    """

    weights: Floats
    offsets: Floats
    softmax: bool

    @classmethod
    def of(cls, estimator: Any) -> LinearMap:
        """That of a fitted linear model, of a pipeline that scales before it, or of a search.

        What it comes to is compared with what the model itself answers, whichever class it has.
        """
        best = getattr(estimator, "best_estimator_", None)
        if best is not None:
            return cls.of(best)
        steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
        last, name = steps[-1], type(steps[-1]).__name__
        if not is_linear(last):
            raise NotApplicableError(
                f"{name} is not linear in its features; explain it by lime, kernel-shap or "
                "occlusion"
            )
        weights = np.atleast_2d(last.coef_).astype(np.float64)
        offsets = np.broadcast_to(np.ravel(getattr(last, "intercept_", 0.0)), len(weights))
        for step in reversed(steps[:-1]):
            scale, shift = _affine(step)
            offsets = offsets + weights @ shift if shift.size else offsets
            weights = weights @ scale if scale.ndim == 2 else weights * scale
        return cls(weights, np.asarray(offsets, dtype=np.float64), False)._compared(estimator, name)

    def logits(self, X: Floats) -> Floats:
        """(n, k)."""
        return X @ self.weights.T + self.offsets

    def follow_back(
        self,
        X: Floats,
        weigh: Callable[[Floats, Floats, slice], Floats],
        rule: Literal["gradient", "lrp", "deeplift"],
        baseline: Floats | None,
        epsilon: float,
    ) -> Floats:
        """The attributions of the records in the shape of X; see ``models.attributions``."""
        flat = X.reshape(len(X), -1)
        start = (
            np.zeros((1, flat.shape[1]))
            if baseline is None
            else baseline.reshape(-1, flat.shape[1])
        )
        logits = self.logits(flat)
        seeds = weigh(logits, self.logits(start), slice(None))
        if rule == "lrp":
            seeds = seeds * logits / (logits + np.copysign(epsilon, logits))
        gradient = seeds @ self.weights
        if rule == "gradient":
            return gradient.reshape(X.shape)
        return (gradient * (flat if rule == "lrp" else flat - start)).reshape(X.shape)

    def _compared(self, estimator: Any, name: str) -> LinearMap:
        """The same, if the model answers as it says; with softmax where that holds as well."""
        size = self.weights.shape[1]
        probes = np.random.default_rng(0).normal(size=(_PROBES, size))
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            import pandas as pd

            asked: Any = pd.DataFrame(probes, columns=names)
        else:
            asked = probes
        logits = self.logits(probes)
        if not _answers(estimator, asked, logits):
            raise NotApplicableError(
                f"{name} does not answer with its coefficients times the features; explain it by "
                "lime, kernel-shap or occlusion"
            )
        if not hasattr(estimator, "predict_proba"):
            return self
        given = estimator.predict_proba(copied(asked))
        follows = (
            np.hstack([expit(-logits), expit(logits)])
            if logits.shape[1] == 1
            else softmax(logits, axis=1)
        )
        return LinearMap(self.weights, self.offsets, bool(np.allclose(given, follows, atol=1e-6)))


def _answers(estimator: Any, X: Any, logits: Floats) -> bool:
    """Whether a model answers for records X (n, d) with these logits, or numbers, (n, k).

    One logit for each pair of classes, which a vote is taken of, is not the logit of a class.
    """
    decide = getattr(estimator, "decision_function", None)
    given = np.ravel((decide or estimator.predict)(copied(X)))  # a step may work in place
    if given.size != logits.size or not np.allclose(given, logits.ravel(), rtol=1e-6, atol=1e-8):
        return False
    classes = getattr(estimator, "classes_", None)
    if decide is None or classes is None or len(classes) < 2:
        return True
    single = logits.shape[1] == 1
    best = (logits[:, 0] > 0).astype(np.intp) if single else logits.argmax(axis=1)
    fits = logits.shape[1] == (1 if len(classes) == 2 else len(classes))
    return fits and bool((np.asarray(estimator.predict(copied(X))) == classes[best]).all())


def _affine(step: Any) -> tuple[Floats, Floats]:
    """What a step of a pipeline multiplies features by and then adds, if it is one that scales.

    A factor for each feature, (d,), or a matrix (e, d), and what is added, (e,), empty for none.
    """
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    one, none = np.ones(1), np.empty(0)
    if step is None or step == "passthrough":
        return one, none
    if isinstance(step, StandardScaler | RobustScaler):
        scale = one if step.scale_ is None else 1.0 / step.scale_
        centre = step.mean_ if isinstance(step, StandardScaler) else step.center_
        moved = centre is not None and getattr(step, "with_mean", True)
        return scale, -centre * scale if moved else none
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return 1.0 / step.scale_, none
    if isinstance(step, MinMaxScaler) and not step.clip:
        return step.scale_, step.min_
    if isinstance(step, PCA):
        spread = np.sqrt(step.explained_variance_) if step.whiten else np.ones(step.n_components_)
        matrix = step.components_ / spread[:, None]
        return matrix, -matrix @ step.mean_
    raise NotApplicableError(
        f"The step {type(step).__name__} of the pipeline is not known to be linear; explain the "
        "model by lime, kernel-shap or occlusion"
    )
