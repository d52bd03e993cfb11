"""The parameter vector of scikit-learn's linear models and neural networks, to read and to replace.

A vector (p,) has the coefficients first, then the intercepts, each array row by row; for a network
all layers of weights, then all of biases. An intercept that is not fitted is no parameter. Trees,
neighbours and kernels have no vector: what they learn has no fixed number of coordinates.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import ModelError
from leakscope.protocols import Floats, Model, ParametricModel

# What scikit-learn's own estimators need beside the vector to predict: which labels there are, and
# shapes. All else that fitting leaves in them tells more of the members than the vector does: the
# optimizer's moments, the curve of the loss, singular values, the path of a cross-validation.
NEEDED = (
    "classes_",
    "feature_names_in_",
    "n_features_in_",
    "n_layers_",
    "n_outputs_",
    "out_activation_",
    "_base_loss",
    "_label_binarizer",
)


def has_parameters(estimator: Any) -> bool:
    """Whether a fitted estimator, or the one inside a pipeline or a search, has a vector."""
    return bool(_names(_inside(estimator)))


def parameters_of(model: Model) -> Floats:
    """The parameter vector of a model, (p,), or one sentence where it has none."""
    if isinstance(model, ParametricModel):
        return model.parameters()
    raise ModelError(
        f"{model.name} shows no parameters; use a linear model or a neural network, or another "
        "channel"
    )


def parameters(estimator: Any) -> Floats:
    """The parameter vector of a fitted estimator, (p,)."""
    fitted = _inside(estimator)
    parts = [np.ravel(part) for name in _checked_names(fitted) for part in _arrays(fitted, name)]
    return np.concatenate(parts).astype(np.float64)


def with_parameters(estimator: Any, vector: ArrayLike) -> Any:
    """A copy that predicts with these parameters (p,) in place of its own.

    Of one of scikit-learn's own estimators, or of ours, the copy keeps what it needs to predict
    and nothing else of its training; another library's keeps all it has. What is fitted before it
    in a pipeline stays as it is; of a search the best estimator is left.
    """
    if hasattr(estimator, "steps"):
        whole = copy.copy(estimator)
        *before, (name, last) = estimator.steps
        whole.steps = [*before, (name, with_parameters(last, vector))]
        return whole
    best = getattr(estimator, "best_estimator_", None)
    if best is not None:
        return with_parameters(best, vector)
    names, values = _checked_names(estimator), np.asarray(vector, dtype=np.float64)
    size = len(parameters(estimator))
    if values.shape != (size,):
        raise ModelError(
            f"Parameters of shape {values.shape} do not fit {type(estimator).__name__}, which has "
            f"{size}; give one number for each"
        )
    changed = _bare(estimator)
    for name in names:
        arrays = []
        for part in _arrays(estimator, name):
            own, values = values[: part.size], values[part.size :]
            arrays.append(own.reshape(part.shape).astype(part.dtype))
        setattr(changed, name, arrays if name.endswith("s_") else _as_it_was(arrays[0]))
    return changed


def _inside(estimator: Any) -> Any:
    """The estimator at the end of a pipeline, or the best one of a search."""
    if hasattr(estimator, "steps"):
        return _inside(estimator.steps[-1][1])
    best = getattr(estimator, "best_estimator_", None)
    return estimator if best is None else _inside(best)


def _names(fitted: Any) -> tuple[str, ...]:
    """The attributes that hold the parameters; none where there is no vector.

    A property does not count: a kernel machine computes its coefficients from the records it keeps
    and would not predict with others.
    """
    held = getattr(fitted, "__dict__", {})
    if isinstance(held.get("coefs_"), list) and isinstance(held.get("intercepts_"), list):
        return "coefs_", "intercepts_"
    # Partial least squares predicts with the means of its records too, outside of any vector.
    by_means = type(fitted).__module__.startswith("sklearn.cross_decomposition")
    if by_means or not isinstance(held.get("coef_"), np.ndarray):
        return ()
    free = "intercept_" in held and getattr(fitted, "fit_intercept", True)
    return ("coef_", "intercept_") if free else ("coef_",)


def _checked_names(fitted: Any) -> tuple[str, ...]:
    names = _names(fitted)
    if not names:
        raise ModelError(
            f"{type(fitted).__name__} has no parameter vector; use a linear model or a neural "
            "network, fitted, whose coefficients are a dense array"
        )
    return names


def _arrays(fitted: Any, name: str) -> Sequence[np.ndarray[Any, Any]]:
    held = getattr(fitted, name)
    return held if isinstance(held, list) else [np.asarray(held)]


def _as_it_was(part: np.ndarray[Any, Any]) -> Any:
    """A number where there was a number: a single intercept is one in most regressions."""
    return part if part.ndim else part[()]


def _bare(estimator: Any) -> Any:
    if not type(estimator).__module__.startswith(("sklearn.", "leakscope.")):
        return copy.deepcopy(estimator)
    from sklearn.base import clone

    bare = clone(estimator)
    for name in ("intercept_", *NEEDED):
        if name in vars(estimator):
            setattr(bare, name, copy.deepcopy(vars(estimator)[name]))
    return bare
