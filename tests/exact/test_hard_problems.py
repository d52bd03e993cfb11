"""Every model without one record, of problems that were made to be hard to leave records out of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leakscope.exact.columns import LeftOut
from leakscope.exact.leaving_out import Task
from leakscope.exact.penalized import Regression
from leakscope.protocols import Floats

Problem = tuple[np.ndarray, np.ndarray, np.ndarray | None]
Kind = Callable[[np.random.Generator, np.ndarray, np.ndarray], Problem]


def outliers(rng: np.random.Generator, X: np.ndarray, slopes: np.ndarray) -> Problem:
    """Some records are far away, and predicted surely."""
    y = (X @ slopes + rng.logistic(size=len(X)) > 0).astype(int)
    far = rng.choice(len(X), 3, replace=False)
    X[far] *= 10.0 ** rng.uniform(1, 4)
    y[far] = X[far] @ slopes > 0
    return X, y, None


def rare_classes(rng: np.random.Generator, X: np.ndarray, slopes: np.ndarray) -> Problem:
    """Classes of a few records, and some whose records hardly count."""
    several = rng.normal(size=(X.shape[1], 3)) / 2
    y = (X @ several + rng.gumbel(size=(len(X), 3)) + [2.5, 0.0, 0.0]).argmax(axis=1)
    return X, y, 10.0 ** rng.uniform(-4, 0, size=3)[y]


def weights(rng: np.random.Generator, X: np.ndarray, slopes: np.ndarray) -> Problem:
    """Records count for a thousandth or a thousand."""
    y = (X @ slopes + rng.logistic(size=len(X)) > 0).astype(int)
    return X, y, 10.0 ** rng.uniform(-3, 3, size=len(X))


def skewed(rng: np.random.Generator, X: np.ndarray, slopes: np.ndarray) -> Problem:
    """A feature with a long tail, a rare one, and scales from a millionth to a million."""
    X[:, 0] = np.exp(2.0 * X[:, 0])
    X[:, 1] = rng.random(len(X)) < 10 / len(X)
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ slopes
    y = (logits + rng.logistic(size=len(X)) > 0).astype(int)
    return X * 10.0 ** rng.uniform(-6, 6, size=X.shape[1]), y, None


def categories(rng: np.random.Generator, n: int) -> np.ndarray:
    """A feature for each of several kinds, some of them rare, and one that is mostly zero."""
    kinds = [np.eye(k)[rng.choice(k, n, p=rng.dirichlet(np.ones(k)))] for k in (6, 9, 12)]
    amounts = np.where(rng.random(n) < 0.1, rng.exponential(size=n), 0.0)
    return np.column_stack([*kinds, amounts])


def tables(rng: np.random.Generator, X: np.ndarray, slopes: np.ndarray) -> Problem:
    """Categories, of which each has a feature of its own: most numbers are zero."""
    X = categories(rng, len(X))
    logits = X @ rng.normal(size=X.shape[1]) * 10.0 ** rng.uniform(-1, 0.5)
    return X, (logits + rng.logistic(size=len(X)) > 0).astype(int), None


def separated_tables(rng: np.random.Generator, X: np.ndarray, slopes: np.ndarray) -> Problem:
    """Three classes of such records, and an amount so large that little is left to be learnt."""
    X = categories(rng, len(X))
    X[:, -1] *= 10.0 ** rng.uniform(2, 4)
    alike = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    several = rng.normal(size=(X.shape[1], 3)) * 10.0 ** rng.uniform(-1, 0.5)
    y = (alike @ several + rng.gumbel(size=(len(X), 3)) + [2.0, 0.0, 0.0]).argmax(axis=1)
    return X, y, None


def decrement(regression: Regression, model: Floats, record: int) -> float:
    """Newton's decrement of a model without a record."""
    without = regression.weights.copy()
    without[record] = 0.0
    gradient = regression.gradients(model[..., None], without).ravel()
    steps = np.linalg.solve(regression.hessian(model, without), gradient)
    return float(np.sqrt(max(0.0, gradient @ steps)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "kind", [outliers, rare_classes, weights, skewed, tables, separated_tables]
)
def test_every_model_is_within_twice_the_tolerance(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng([seed, len(kind.__name__)])
    n, l2 = int(rng.integers(100, 500)), 10.0 ** rng.uniform(-4, 1)
    X, slopes = rng.normal(size=(n, 4)), rng.normal(size=4) * 10.0 ** rng.uniform(-2, 0.5)
    X, y, sample_weight = kind(rng, X, slopes)
    regression, full = Task.of(X, y, l2, "auto", sample_weight).turned
    models, found = LeftOut.of(regression, full, np.arange(n)).solve_frozen()
    assert found.any()  # the others are trained one by one
    reached = [decrement(regression, models[..., i], int(i)) for i in np.flatnonzero(found)]
    assert max(reached) < 2 * full.tolerance


@pytest.mark.parametrize("seed", [23, 25, 27, 35])
def test_a_curvature_that_single_precision_cannot_invert_is_left_to_double(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, l2 = int(rng.integers(100, 500)), 10.0 ** rng.uniform(-4, 0)
    X, y, _ = separated_tables(rng, np.zeros((n, 1)), np.zeros(1))
    regression, full = Task.of(X, y, l2, "auto", None).turned
    assert full.condition > 1e6  # rounding would say that models are found that are far away
    models, found = LeftOut.of(regression, full, np.arange(n)).solve_frozen()
    assert found.any()
    reached = [decrement(regression, models[..., i], int(i)) for i in np.flatnonzero(found)]
    assert max(reached) < 2 * full.tolerance


@pytest.mark.parametrize("seed", [3, 23])
def test_what_is_sure_of_a_class_that_hardly_counts_is_so(seed: int) -> None:
    """Rounding where there is much curvature counts more where there is little of it."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(1000, 2)), rng.integers(0, 3, 1000)
    sample_weight = np.where(y == 2, 5e-5, 1.0) * 10.0 ** rng.uniform(-2, 0, 1000) * 3
    regression, full = Task.of(X, y, 5e-6, "auto", sample_weight).turned
    assert 1e3 < full.condition < 1e5
    models, found = LeftOut.of(regression, full, np.arange(1000)).solve_frozen()
    some = np.flatnonzero(found)[::10]
    reached = [decrement(regression, models[..., i], int(i)) for i in some]
    assert max(reached) < 2 * full.tolerance
