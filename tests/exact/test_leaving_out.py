from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, Ridge

import leakscope.exact.leaving_out as module
from leakscope import load_dataset
from leakscope.errors import InputError
from leakscope.exact import leave_one_out
from leakscope.records import Records

# PAPERS: six records in the plane, l2 = 1.
SIX = np.array([(0, 0), (1, 0), (0, 1), (2, 1), (1, 3), (3, 2)])
LABELS = np.array([0, 0, 1, 0, 1, 1])


def refit(X: np.ndarray, y: np.ndarray, l2: float, weights: np.ndarray | None = None) -> np.ndarray:
    """The parameters of one model by scikit-learn, as close to the optimum as it goes."""
    model: Any
    if y.dtype.kind == "f":
        model = Ridge(alpha=l2, solver="svd").fit(X, y, weights)
        return np.append(model.coef_, model.intercept_)
    model = LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-10, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about conditions, and is compared anyway
        model.fit(X, y, weights)
    theta = np.column_stack([model.coef_, model.intercept_])
    return theta if len(theta) > 1 else theta[0]


def probabilities(X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    logits = X @ theta[..., :-1].T + theta[..., -1]
    return softmax(logits if logits.ndim > 1 else np.column_stack([0 * logits, logits]), axis=1)


def newton_step(
    X: np.ndarray, y: np.ndarray, theta: np.ndarray, l2: float, weights: np.ndarray
) -> np.ndarray:
    """How far each logit of a binary or multinomial model is from its optimum, to first order.

    The gradient and the curvature are written down record by record, with all C classes.
    """
    classes = np.unique(y)
    binary = len(classes) == 2
    rows = np.column_stack([X, np.ones(len(X))])
    shares = probabilities(X, theta)[:, 1:] if binary else probabilities(X, theta)
    outputs, width = shares.shape[1], rows.shape[1]
    gradient, curvature = np.zeros(outputs * width), np.zeros((outputs * width,) * 2)
    for row, share, label, weight in zip(rows, shares, y, weights, strict=True):
        wanted = (classes[1:] if binary else classes) == label
        gradient += weight * np.kron(share - wanted, row)
        spread = np.diag(share) - np.outer(share, share)
        curvature += weight * np.kron(spread, np.outer(row, row))
    penalty = l2 * np.tile(np.append(np.ones(width - 1), 0.0), outputs)
    gradient += penalty * np.ravel(theta)
    step = np.linalg.lstsq(curvature + np.diag(penalty), gradient, rcond=1e-14)[0]
    moved = step.reshape(outputs, width) @ rows.T
    return moved - moved.mean(axis=0) if outputs > 1 else moved


def test_six_records_have_the_published_models() -> None:
    found = leave_one_out(SIX, LABELS)
    expected = [-0.07852174624583, 1.04812625216233, -1.08211473657353]
    without = [-0.22194895148949, 0.90313747686267, -0.45240573195638]
    np.testing.assert_allclose(found.theta, expected, atol=1e-9)
    np.testing.assert_allclose(found.theta_without[0], without, atol=1e-9)
    assert found.self_ranks().tolist() == [2, 4, 1, 2, 3, 1]
    assert (found.family, found.method, found.l2, len(found)) == ("binomial", "exact", 1.0, 6)
    assert found.X.shape == (6, 2)


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Few records with 2 to 4 classes of at least two records each, sometimes d > n."""
    classes = draw(st.integers(2, 4))
    n, d = draw(st.integers(2 * classes, 14)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.permutation(np.arange(n) % classes)
    X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 5.0], size=d)
    weights = np.ones(n) if draw(st.booleans()) else rng.uniform(0.2, 3.0, size=n)
    return X, y, 10.0 ** draw(st.floats(-4, 2)), weights


@pytest.mark.slow
@settings(max_examples=60)
@given(problems())
def test_each_model_is_the_optimum_of_the_other_records(
    problem: tuple[np.ndarray, np.ndarray, float, np.ndarray],
) -> None:
    X, y, l2, weights = problem
    found = leave_one_out(X, y, l2, sample_weight=weights)
    for record in (0, len(y) - 1):
        kept = np.delete(np.arange(len(y)), record)
        theta = found.theta_without[record]
        off = newton_step(X[kept], y[kept], theta, l2, weights[kept])
        assert np.abs(off).max() < 1e-7
        again = refit(X[kept], y[kept], l2, weights[kept])
        np.testing.assert_allclose(probabilities(X, theta), probabilities(X, again), atol=1e-5)
    assert np.abs(newton_step(X, y, found.theta, l2, weights)).max() < 1e-7


@settings(max_examples=30)
@given(problems(), st.booleans())
def test_each_ridge_regression_is_the_one_of_the_other_records(
    problem: tuple[np.ndarray, np.ndarray, float, np.ndarray], fractions: bool
) -> None:
    X, y, l2, weights = problem
    targets = y + 0.5 * fractions * X[:, 0]
    family = "auto" if (targets % 1 != 0).any() else "gaussian"
    found = leave_one_out(X, targets, l2, family, weights)
    assert (found.family, found.classes) == ("gaussian", None)
    for record in range(len(y)):
        kept = np.delete(np.arange(len(y)), record)
        again = refit(X[kept], targets[kept].astype(float), l2, weights[kept])
        np.testing.assert_allclose(found.theta_without[record], again, rtol=1e-6, atol=1e-8)


def test_without_a_penalty_the_models_are_those_of_least_squares_and_likelihood() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X = np.column_stack([X, X @ [1.0, 2.0, -1.0]])  # collinear: the shortest optimum is meant
    y = X[:, 0] + rng.normal(size=40)
    found = leave_one_out(X, y, 0.0)
    rows = np.delete(np.arange(40), 4)
    centred = X[rows] - X[rows].mean(axis=0)
    shortest = np.linalg.pinv(centred) @ (y[rows] - y[rows].mean())
    np.testing.assert_allclose(found.theta_without[4, :-1], shortest, atol=1e-10)
    labels = (y > 0).astype(int)
    found = leave_one_out(X, labels, 0.0)
    off = newton_step(X[rows], labels[rows], found.theta_without[4], 0.0, np.ones(39))
    assert np.abs(off).max() < 1e-8
    # What is shortest lies in the row space: the last feature is the combination of the others.
    np.testing.assert_allclose(found.theta_without[:, :-1] @ [1.0, 2.0, -1.0, -1.0], 0, atol=1e-9)


def test_a_multinomial_model_of_two_classes_penalizes_both() -> None:
    """Its logit is a difference of two weights of half the size: half the penalty on it."""
    found = leave_one_out(SIX, LABELS, 1.0, "multinomial")
    alike = leave_one_out(SIX, LABELS, 0.5, "binomial")
    assert found.theta_without.shape == (6, 2, 3)
    difference = found.theta_without[:, 1] - found.theta_without[:, 0]
    np.testing.assert_allclose(difference, alike.theta_without, atol=1e-9)
    np.testing.assert_allclose(found.theta_without.sum(axis=1), 0, atol=1e-12)


def test_whole_weights_are_repeated_records() -> None:
    weights = np.array([1.0, 3.0, 2.0, 1.0, 1.0, 2.0])
    repeated = np.repeat(np.arange(6), weights.astype(int))
    weighted = leave_one_out(SIX, LABELS, sample_weight=weights)
    plain = leave_one_out(SIX[repeated], LABELS[repeated])
    np.testing.assert_allclose(weighted.theta, plain.theta, atol=1e-9)
    first = np.searchsorted(repeated, [0, 3, 4])  # those that occur once
    np.testing.assert_allclose(
        weighted.theta_without[[0, 3, 4]], plain.theta_without[first], atol=1e-9
    )


@pytest.mark.parametrize("family", ["binomial", "gaussian"])
def test_a_record_of_weight_zero_is_in_no_model(family: str) -> None:
    weights = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    found = leave_one_out(SIX, LABELS, 1.0, family, weights)
    assert (found.theta_without[2] == found.theta).all()
    kept = weights > 0
    without = leave_one_out(SIX[kept], LABELS[kept], 1.0, family)
    np.testing.assert_allclose(found.theta_without[kept], without.theta_without, atol=1e-9)


def test_the_models_do_not_depend_on_the_workers_and_progress_is_told() -> None:
    rng = np.random.default_rng(1)
    X, told = rng.normal(size=(1100, 2)), []
    y = (X[:, 0] + rng.normal(size=1100) > 0).astype(int)
    one = leave_one_out(X, y, workers=1, progress=lambda *step: told.append(step))
    two = leave_one_out(X, y, workers=2)
    assert (one.theta_without == two.theta_without).all()
    assert told == [("records left out", done, 1100) for done in (550, 1100)]


def test_labels_may_be_words() -> None:
    words = np.array(["no", "yes"])[LABELS]
    found = leave_one_out(SIX.tolist(), words.tolist())
    assert found.classes is not None
    assert found.classes.tolist() == ["no", "yes"]
    assert (found.theta_without == leave_one_out(SIX, LABELS).theta_without).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_features_of_very_different_scales_and_offsets_lose_no_digits(classes: int) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4)) * [1e-4, 1.0, 1e3, 1e6] + [0.0, 1e4, 1e3, 1e7]
    y = np.digitize(rng.normal(size=80) + (X[:, 2] - 1e3) / 1e3, [0.0, 1.0])
    y = np.minimum(y, classes - 1)
    found = leave_one_out(X, y)
    rows = np.arange(1, 80)
    off = newton_step(X[rows], y[rows], found.theta_without[0], 1.0, np.ones(79))
    assert np.abs(off).max() < 1e-6


def influence_by_refitting(
    X: np.ndarray, y: np.ndarray, records: np.ndarray, l2: float
) -> np.ndarray:
    """L(query, model without the record) − L(query, model), L = 1 − P(label), (n, records)."""
    label = probabilities(X, refit(X, y, l2)).argmax(axis=1)[:, None]
    before = np.take_along_axis(probabilities(X, refit(X, y, l2)), label, 1)
    columns = []
    for record in records:
        kept = np.delete(np.arange(len(y)), record)
        after = probabilities(X, refit(X[kept], y[kept], l2))
        columns.append(before - np.take_along_axis(after, label, 1))
    return np.hstack(columns)


def check_fifty_records_of(data: Records) -> None:
    rng = np.random.default_rng(0)
    rows = rng.choice(len(data.y), 1000, replace=False)
    X, y = np.asarray(data.X)[rows], data.y[rows]
    records = rng.choice(1000, 50, replace=False)
    found = leave_one_out(X, y).influence(X)[:, records]
    expected = influence_by_refitting(X, y, records, 1.0)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.slow
def test_fifty_records_of_adult_have_the_influence_that_refitting_shows() -> None:
    check_fifty_records_of(load_dataset("adult"))


@pytest.mark.slow
def test_fifty_records_of_hospital_have_the_influence_that_refitting_shows(
    data_folder: Path,
) -> None:
    if not (data_folder / "diabetic_data.csv.xz").is_file():
        pytest.skip("diabetic_data.csv.xz is not in the data folder")
    check_fifty_records_of(load_dataset("hospital", folder=data_folder))


def test_adult_reveals_as_many_of_its_own_records_as_published() -> None:
    """Of 2,000 records 10.2 ± .7, 21.3 ± .9 and 27.6 ± .8 % for k = 1, 5 and 10."""
    adult = load_dataset("adult")
    rows = np.random.default_rng(3).choice(len(adult.y), 2000, replace=False)
    ranks = leave_one_out(np.asarray(adult.X)[rows], adult.y[rows]).self_ranks()
    shares = [float((ranks <= k).mean()) for k in (1, 5, 10)]
    np.testing.assert_allclose(shares, [0.102, 0.213, 0.276], atol=0.035)  # four deviations


LINE = np.arange(10.0)[:, None]
SPLIT = (LINE[:, 0] > 4.5).astype(int)


@pytest.mark.parametrize("l2", [0.0, 1e-14])
def test_classes_that_can_be_separated_are_refused(l2: float) -> None:
    with pytest.raises(InputError, match=f"all records has no optimum at l2 = {l2:g}, or none"):
        leave_one_out(LINE, SPLIT, l2)
    with pytest.raises(InputError, match="use a larger l2"):
        leave_one_out(LINE, np.repeat([0, 1, 2], [4, 3, 3]), l2)


@pytest.mark.parametrize("l2", [0.0, 1e-14])
def test_a_record_without_which_classes_can_be_separated_is_named(l2: float) -> None:
    labels = SPLIT.copy()
    labels[8] = 0
    with pytest.raises(InputError, match=r"no unique optimum at l2 = .* without record 8, or none"):
        leave_one_out(LINE, labels, l2)
    found = leave_one_out(LINE, labels, 1e-6)
    assert np.abs(newton_step(LINE, labels, found.theta, 1e-6, np.ones(10))).max() < 1e-6
    labels[1] = 1  # two such records are none: without either the other is still there
    assert leave_one_out(LINE, labels, l2).theta_without.shape == (10, 2)


def test_a_column_of_one_record_alone_is_separable_only_without_a_penalty() -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=30), np.arange(30) == 7]) * [1.0, 1000.0]
    with pytest.raises(InputError, match="model of all records has no optimum"):
        leave_one_out(X, np.arange(30) % 2, 0.0)
    with pytest.raises(InputError, match="without record 7"):
        leave_one_out(X, rng.normal(size=30), 0.0)
    assert leave_one_out(X, np.arange(30) % 2, 1e-3).theta_without[7, 1] == pytest.approx(
        0, abs=1e-10
    )


def test_many_records_are_counted_and_the_first_are_named() -> None:
    """Each record has a direction of its own, as many as there are."""
    X = np.eye(8)[:, :7]
    with pytest.raises(InputError, match=r"without each of 8 records \(0, 1, 2, 3, 4, …\)"):
        leave_one_out(X, np.arange(8) + 0.5, 0.0)


def test_what_is_handed_in_is_checked() -> None:
    for wrong, message in [
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"l2": -1.0}, "l2 must be a finite number of at least 0, got -1.0"),
        ({"l2": np.inf}, "l2 must be a finite number"),
        ({"family": "binomal"}, "did you mean 'binomial'"),
    ]:
        with pytest.raises(InputError, match=message):
            leave_one_out(SIX, LABELS, **wrong)  # type: ignore[arg-type]


def test_the_order_of_the_features_in_memory_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    found = leave_one_out(np.asfortranarray(X), y)
    np.testing.assert_allclose(found.theta_without, leave_one_out(X, y).theta_without, rtol=1e-12)


def test_an_error_in_progress_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, alone = list[int](), module._models_without

    def counted(task: module.Task, records: np.ndarray) -> object:
        begun.append(len(records))
        time.sleep(0.01)
        return alone(task, records)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_COLUMNS", 2)
    monkeypatch.setattr(module, "_models_without", counted)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(100, 2))
    with pytest.raises(KeyboardInterrupt):
        leave_one_out(features, np.arange(100) % 2, progress=stopped)
    assert len(begun) < 20  # of 50
