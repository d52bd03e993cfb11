from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, xlogy
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.naive_bayes import BernoulliNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from torch import nn

from leakscope.defenses import as_defense
from leakscope.defenses.noise import OutputPerturbation
from leakscope.defenses.regularization import (
    L2,
    EarlyStopping,
    EqualCompute,
    LabelSmoothing,
    SmoothedCrossEntropy,
    stronger,
)
from leakscope.errors import InputError
from leakscope.networks import MLP
from leakscope.networks.training import Figures, Hooks, train
from leakscope.protocols import Recipe
from leakscope.recipes import as_recipe, task_of
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
RECORDS = Records(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))
NUMBERS = Records(X, X @ [1.0, -2.0, 0.0, 0.5] + rng.normal(size=60))


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 5, classes])


def probable(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, classes), nn.Softmax(dim=1))


RECIPE = TorchRecipe("net", mlp, epochs=6, batch_size=16, lr=0.01)


def parameters(recipe: Any, records: Records = RECORDS) -> np.ndarray:
    members = np.ones((1, len(records)), dtype=np.int8)
    return np.asarray(recipe.fit_many(records, members, [3])[0].parameters())


class Other(Recipe):
    name = "other"

    def fit_many(self, records: Any, roles: Any, seeds: Any) -> list[Any]:
        return []


# Weight decay.


def test_a_network_has_the_decay_on_top_of_its_own() -> None:
    wrapped = L2(0.02).wrap_recipe(replace(RECIPE, weight_decay=0.01))
    assert isinstance(wrapped, TorchRecipe)
    assert wrapped.weight_decay == pytest.approx(0.03)
    assert wrapped.together > 1
    np.testing.assert_array_equal(
        parameters(L2(0.5).wrap_recipe(RECIPE)), parameters(replace(RECIPE, weight_decay=0.5))
    )


@pytest.mark.parametrize("C", [0.7, np.inf])
def test_logistic_regression_is_what_minimizes_the_mean_loss_and_the_penalty(C: float) -> None:
    signs, weight = 2 * RECORDS.y - 1, 0.05 + 1 / (C * 60)

    def objective(theta: np.ndarray) -> float:
        losses = np.logaddexp(0, -signs * (X @ theta[:4] + theta[4]))
        return float(losses.mean() + weight / 2 * theta[:4] @ theta[:4])

    best = minimize(objective, np.zeros(5), tol=1e-12).x
    recipe = as_recipe(LogisticRegression(C=C, tol=1e-10), prepare=False)
    found = parameters(L2(0.02).wrap_recipe(L2(0.03).wrap_recipe(recipe)))
    np.testing.assert_allclose(found, best, atol=1e-5)


def test_ridge_regression_has_a_closed_form() -> None:
    recipe = as_recipe(make_pipeline(StandardScaler(), Ridge(alpha=2.0, fit_intercept=False)))
    found = parameters(L2(0.1).wrap_recipe(recipe), NUMBERS)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    # mean squared error + (2 / n + 0.1 / 2)·‖w‖²
    gram = Z.T @ Z / 60 + (2 / 60 + 0.05) * np.eye(4)
    np.testing.assert_allclose(found[-4:], np.linalg.solve(gram, Z.T @ NUMBERS.y / 60))


def test_the_penalty_is_for_the_records_that_a_model_has() -> None:
    recipe = L2(0.1).wrap_recipe(as_recipe(Ridge(alpha=0.0, fit_intercept=False), prepare=False))
    roles = np.array([[1] * 60, [1] * 15 + [0] * 45], dtype=np.int8)
    for model, n in zip(recipe.fit_many(NUMBERS, roles, [0, 1]), (60, 15), strict=True):
        A, b = X[:n], NUMBERS.y[:n]
        expected = np.linalg.solve(A.T @ A / n + 0.05 * np.eye(4), A.T @ b / n)
        np.testing.assert_allclose(model.parameters()[:4], expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "n", "batch"),
    [
        ({"solver": "lbfgs"}, 900, 900),
        ({"batch_size": 20}, 60, 20),
        ({"batch_size": 500}, 60, 60),
        ({}, 60, 60),
        ({}, 900, 200),
    ],
)
def test_a_neural_network_divides_its_penalty_by_the_batch(
    options: dict[str, Any], n: int, batch: int
) -> None:
    network = MLPClassifier((3,), alpha=0.5, **options)
    assert stronger(network, n, 0.02) == {"alpha": pytest.approx(0.5 + batch * 0.02)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_loss_that_a_neural_network_reports_has_the_penalty() -> None:
    network = MLPClassifier((3,), alpha=0.0, solver="lbfgs", max_iter=30, random_state=0)
    network.set_params(**stronger(network, 60, 0.02)).fit(X, RECORDS.y)
    p = network.predict_proba(X)[:, 1]
    mean = -(xlogy(RECORDS.y, p) + xlogy(1 - RECORDS.y, 1 - p)).mean()
    squares = sum((weights**2).sum() for weights in network.coefs_)
    assert network.loss_ == pytest.approx(mean + 0.02 / 2 * squares, rel=1e-6)


def test_where_the_penalty_is_beside_the_mean_loss_it_is_added() -> None:
    assert stronger(SGDClassifier(alpha=0.1), 60, 0.02) == {"alpha": pytest.approx(0.12)}
    assert stronger(SGDRegressor(alpha=0.1), 7, 0.02) == {"alpha": pytest.approx(0.12)}
    assert stronger(SVC(C=2), 60, 0.02) == {"C": pytest.approx(1 / (0.5 + 1.2))}
    assert stronger(RidgeClassifier(), 60, 0.02) == {"alpha": pytest.approx(1.6)}


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(),
        LogisticRegression(l1_ratio=1.0, solver="saga"),
        LinearSVC(penalty="l1"),
        SGDClassifier(penalty="elasticnet"),
        Lasso(),
        BernoulliNB(),
    ],
)
def test_an_estimator_without_such_a_penalty_is_refused(estimator: Any) -> None:
    with pytest.raises(InputError, match=f"no penalty on squares .*{type(estimator).__name__}"):
        L2(0.1).wrap_recipe(as_recipe(estimator))


def test_another_librarys_estimator_is_refused() -> None:
    class Ridge(LogisticRegression):  # type: ignore[misc]
        pass

    with pytest.raises(InputError, match="no penalty on squares"):
        L2(0.1).wrap_recipe(as_recipe(Ridge()))


def test_a_recipe_that_shows_no_training_is_refused() -> None:
    noisy = as_defense("noise:0.1").wrap_recipe(as_recipe(LogisticRegression()))
    for recipe in (noisy, Other()):
        with pytest.raises(InputError, match=re.escape(f"which the recipe {recipe.name!r} does")):
            L2(0.1).wrap_recipe(recipe)


def test_noise_on_decayed_parameters_keeps_its_promise() -> None:
    noise = OutputPerturbation(epsilon=1.0, delta=1e-5, sensitivity=0.1)
    decayed = L2(0.1).wrap_recipe(as_recipe(LogisticRegression(), prepare=False))
    assert noise.budget(decayed, 60) == (1.0, 1e-5)
    assert task_of(decayed) == "classification"
    assert noise.wrap_recipe(decayed).name == "LogisticRegression+l2:0.1+" + str(noise)


# Stopping early.


def test_a_stopped_network_is_that_of_fewer_epochs() -> None:
    for defense, epochs in ((EarlyStopping(2), 2), (EarlyStopping(), 3)):
        np.testing.assert_array_equal(
            parameters(defense.wrap_recipe(RECIPE)), parameters(replace(RECIPE, epochs=epochs))
        )


def test_training_ends_at_an_accuracy() -> None:
    stopped = EarlyStopping(accuracy=0.6).wrap_recipe(RECIPE)
    assert isinstance(stopped, TorchRecipe)
    assert (stopped.stop_at_accuracy, stopped.epochs) == (0.6, 6)
    both = EarlyStopping(4, accuracy=0.6).wrap_recipe(RECIPE)
    assert isinstance(both, TorchRecipe)
    assert (both.stop_at_accuracy, both.epochs) == (0.6, 4)
    np.testing.assert_array_equal(
        parameters(stopped), parameters(replace(RECIPE, stop_at_accuracy=0.6))
    )


@pytest.mark.parametrize(
    ("defense", "recipe", "said"),
    [
        (EarlyStopping(6), RECIPE, "'early-stop:6' would not stop .*'net' early, whose epochs are"),
        (EarlyStopping(), replace(RECIPE, epochs=1), "whose epochs are 1;"),
        (
            EarlyStopping(accuracy=0.9),
            replace(RECIPE, stop_at_accuracy=0.8),
            r"which stops at an accuracy of 0\.8; give a lower one",
        ),
    ],
)
def test_what_would_never_stop_is_refused(defense: Any, recipe: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        defense.wrap_recipe(recipe)


# Training longer.


def test_extra_epochs_follow() -> None:
    """With a plain optimizer, which remembers nothing, they are the last of a longer training."""
    recipe = replace(RECIPE, optimizer="sgd", stack=1)
    np.testing.assert_array_equal(
        parameters(EqualCompute(3).wrap_recipe(recipe)), parameters(replace(recipe, epochs=9))
    )
    twice = EqualCompute(1).wrap_recipe(EqualCompute(2).wrap_recipe(recipe))
    np.testing.assert_array_equal(parameters(twice), parameters(replace(recipe, epochs=9)))


def test_extra_epochs_come_also_where_training_stopped_early() -> None:
    ended: list[int] = []

    def count(module: nn.Module, epoch: int, figures: Figures) -> None:
        ended.append(epoch)

    recipe = replace(RECIPE, stop_at_accuracy=0.01, hooks=Hooks(on_epoch=count))
    parameters(EqualCompute(3).wrap_recipe(recipe))
    assert ended == [1, 1, 2, 3]


def test_a_loop_that_promises_something_is_left_alone() -> None:
    with pytest.raises(InputError, match=r"'equal-compute:3' needs further epochs, .* 'net' makes"):
        EqualCompute(3).wrap_recipe(replace(RECIPE, loop=train))


# Soft labels.


@pytest.mark.parametrize("alpha", [0.1, 0.6])
def test_the_loss_is_that_of_shared_labels(alpha: float) -> None:
    logits, y = rng.normal(size=(20, 3)), rng.integers(3, size=20)
    targets = (1 - alpha) * np.eye(3)[y] + alpha / 3
    expected = -(targets * log_softmax(logits, axis=1)).sum(axis=1).mean()
    loss = SmoothedCrossEntropy(alpha)
    outputs = torch.tensor(logits, requires_grad=True)
    assert loss(outputs, torch.tensor(y)).item() == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(20,), (20, 1)])
def test_one_logit_is_of_two_classes(shape: tuple[int, ...]) -> None:
    logits, y = rng.normal(size=20), rng.integers(2, size=20)
    targets = 0.8 * y + 0.1
    expected = -(xlogy(targets, expit(logits)) + xlogy(1 - targets, expit(-logits))).mean()
    outputs = torch.tensor(logits.reshape(shape), requires_grad=True)
    loss = SmoothedCrossEntropy(0.2)(outputs, torch.tensor(y))
    assert loss.item() == pytest.approx(expected)


def test_a_network_learns_by_that_loss() -> None:
    def plain_smoothing(outputs: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(outputs, y, label_smoothing=0.3)

    wrapped = LabelSmoothing(0.3).wrap_recipe(replace(RECIPE, loss="cross_entropy"))
    np.testing.assert_array_equal(
        parameters(wrapped), parameters(replace(RECIPE, loss=plain_smoothing))
    )


def test_two_combine_to_one() -> None:
    twice = LabelSmoothing(0.5).wrap_recipe(LabelSmoothing(0.2).wrap_recipe(RECIPE))
    assert isinstance(twice, TorchRecipe)
    assert isinstance(twice.loss, SmoothedCrossEntropy)
    assert twice.loss.alpha == pytest.approx(0.6)


@pytest.mark.parametrize("loss", ["squared_error", nn.functional.mse_loss])
def test_another_loss_is_refused(loss: Any) -> None:
    with pytest.raises(InputError, match=r"'smooth-labels:0\.1' smooths the labels of the cross"):
        LabelSmoothing(0.1).wrap_recipe(replace(RECIPE, loss=loss))


@pytest.mark.parametrize(
    ("recipe", "records"), [(RECIPE, NUMBERS), (replace(RECIPE, factory=probable), RECORDS)]
)
def test_networks_that_give_logits_of_classes_are_needed(recipe: Any, records: Records) -> None:
    with pytest.raises(InputError, match="'smooth-labels' is for networks that give logits"):
        parameters(LabelSmoothing(0.1).wrap_recipe(recipe), records)


# All of them.


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (L2, (0.0,), r"weight_decay must be a finite number above 0, got 0\.0"),
        (EarlyStopping, (-1,), "epoch must be a whole number of at least 0, got -1"),
        (EarlyStopping, (0, 1.5), r"accuracy must be at most 1, got 1\.5"),
        (EarlyStopping, (0, 0.0), r"accuracy must be a finite number above 0, got 0\.0"),
        (EqualCompute, (0,), "extra must be a whole number of at least 1, got 0"),
        (LabelSmoothing, (1.0,), r"alpha must be between 0 and 1, got 1\.0"),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Any, options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(*options)


@pytest.mark.parametrize("make", [EarlyStopping(2), EqualCompute(2), LabelSmoothing(0.1)])
def test_networks_are_needed(make: Any) -> None:
    with pytest.raises(InputError, match="changes how a torch network is trained"):
        make.wrap_recipe(LogisticRegression())
    assert make.budget(RECIPE, 60) is None


def test_how_they_are_written() -> None:
    assert as_defense("early-stop") == EarlyStopping()
    assert str(EarlyStopping()) == "early-stop"
    assert str(EarlyStopping(accuracy=0.9)) == "early-stop (accuracy 0.9)"
    assert str(EarlyStopping(5, 0.9)) == "early-stop:5 (accuracy 0.9)"
    for written in ("l2:0.01", "early-stop:12", "equal-compute:33", "smooth-labels:0.1"):
        assert str(as_defense(written)) == written
