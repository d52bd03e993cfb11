from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import leakscope.exact.columns as module
from leakscope.exact import nearing
from leakscope.exact.columns import LeftOut
from leakscope.exact.curvatures import Curvatures
from leakscope.exact.families import Binomial, Family, Gaussian, Multinomial
from leakscope.exact.newton import Minimum, minimum
from leakscope.exact.penalized import Regression
from leakscope.exact.remainders import Remainders
from leakscope.exact.turning import turned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
WEIGHTS = RNG.uniform(0.5, 2.0, size=40)
RECORDS = np.array([3, 0, 39, 17])
NOISY = X[:, 0] + RNG.normal(size=40)


def solved(family: Family, y: np.ndarray, l2: float = 0.5) -> tuple[Regression, Minimum]:
    regression = Regression.of(family, X, y, WEIGHTS, l2)
    full = minimum(regression, WEIGHTS)
    assert full is not None
    return regression, full


CASES: list[tuple[Family, np.ndarray]] = [
    (Binomial(), (NOISY > 0).astype(int)),
    (Multinomial(3), np.digitize(NOISY, [-0.5, 0.5])),
    (Gaussian(), NOISY),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0].name)
def left_out(request: pytest.FixtureRequest) -> LeftOut:
    return LeftOut.of(*solved(*request.param), RECORDS)


def without(record: int) -> np.ndarray:
    weights = WEIGHTS.copy()
    weights[record] = 0.0
    return weights


def test_the_steps_are_those_of_curvatures_built_without_the_record(left_out: LeftOut) -> None:
    regression, model = left_out.regression, left_out.full.model
    for column, record in enumerate(RECORDS):
        whole = regression.hessian(model, WEIGHTS)
        less = regression.hessian(model, without(record))
        gradient = left_out.own_gradients[..., column].ravel()
        first = np.linalg.solve(whole, gradient)
        np.testing.assert_allclose(left_out.first_order()[..., column].ravel(), first, atol=1e-10)
        step = np.linalg.solve(less, gradient)
        np.testing.assert_allclose(left_out.one_step()[..., column].ravel(), step, atol=1e-10)
        shares = np.linalg.eigvals(np.linalg.solve(whole, less)).real
        assert left_out.kept[column] == pytest.approx(shares.min(), abs=1e-10)
    assert not left_out.determined.any()


def test_the_columns_are_the_minima_without_each_record(left_out: LeftOut) -> None:
    models, found = left_out.solve_frozen()
    assert found.all()
    for column, record in enumerate(RECORDS):
        alone = minimum(left_out.regression, without(record))
        assert alone is not None
        np.testing.assert_allclose(models[..., column], alone.model, atol=1e-9)


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case[0].name)
@pytest.mark.parametrize(("option", "value"), [("_SLOW", 1e-9), ("_ROUNDS", 0)])
def test_a_column_that_is_slow_or_late_is_given_up(
    case: tuple[Family, np.ndarray], option: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = LeftOut.of(*solved(*case), RECORDS)
    for steps in (module, nearing):
        monkeypatch.setattr(steps, option, value)
    models, found = left_out.solve_frozen()
    assert not found.any()
    assert (models == left_out.full.model[..., None]).all()


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case[0].name)
def test_single_precision_leads_near_enough_to_save_exact_steps(
    case: tuple[Family, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = LeftOut.of(*turned(*solved(*case)), RECORDS)
    changes, _ = left_out._nearly(left_out.curvatures, np.arange(4))
    for column, record in enumerate(RECORDS):
        alone = minimum(left_out.regression, without(record))
        assert alone is not None
        away = alone.model - left_out.full.model
        off = np.linalg.norm(changes[..., column] - away) / np.linalg.norm(away)
        assert 0 < off < 1e-5
    rounds, gradients = list[int](), Regression.gradients

    def counted(self: Regression, models: np.ndarray, *given: np.ndarray) -> np.ndarray:
        rounds.append(models.shape[2])
        return gradients(self, models, *given)

    monkeypatch.setattr(Regression, "gradients", counted)
    assert left_out.solve_frozen()[1].all()
    few = sum(rounds)
    monkeypatch.setattr(Remainders, "of", lambda self, u, *_, **__: np.full_like(u, np.nan))
    assert left_out.solve_frozen()[1].all()
    assert 2 * few < sum(rounds) - few


def decrements(regression: Regression, models: np.ndarray) -> np.ndarray:
    """How far models are from the optima without each record in turn, as Newton's decrement."""
    found = []
    for record in range(models.shape[2]):
        weights = regression.weights.copy()
        weights[record] = 0.0
        gradient = regression.gradients(models[..., [record]], weights).ravel()
        curvature = regression.hessian(models[..., record], weights)
        found.append(np.sqrt(gradient @ np.linalg.solve(curvature, gradient)))
    return np.array(found)


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case[0].name)
def test_what_is_found_is_below_the_tolerance_of_the_decrement(
    case: tuple[Family, np.ndarray], turn: bool
) -> None:
    regression, full = solved(*case, l2=1e-2)
    if turn:
        regression, full = turned(regression, full)
    left_out = LeftOut.of(regression, full, np.arange(40))
    models, found = left_out.solve_frozen()
    assert found.all()
    assert decrements(regression, models).max() < full.tolerance == 1e-10


MANY = np.random.default_rng(3).normal(size=(2500, 5)) * 10.0 ** np.arange(-2, 3)


@pytest.mark.parametrize("family", [Binomial(), Multinomial(3)], ids=lambda family: family.name)
def test_what_single_precision_is_sure_of_is_below_the_tolerance_too(family: Family) -> None:
    """However features are scaled; and it is sure of most where there are many records."""
    noisy = MANY @ (1.0 / 10.0 ** np.arange(-2, 3)) + np.random.default_rng(4).normal(size=2500)
    y = (noisy > 0).astype(int) if family.name == "binomial" else np.digitize(noisy, [-1, 1])
    regression = Regression.of(family, MANY, y, np.ones(2500), 1e-3)
    full = minimum(regression, np.ones(2500))
    assert full is not None
    plain = LeftOut.of(regression, full, np.arange(100))
    assert not plain._nearly(plain.curvatures, np.arange(100))[1].sure.any()
    regression, full = turned(regression, full)
    left_out = LeftOut.of(regression, full, np.arange(100))
    changes, near = left_out._nearly(left_out.curvatures, np.arange(100))
    assert near.sure.mean() > 0.2
    reached = decrements(regression, full.model[..., None] + changes)
    assert reached[near.sure].max() < full.tolerance == 1e-10
    doubtful = LeftOut.of(regression, replace(full, doubt=1.0), np.arange(100))
    assert not doubtful._nearly(left_out.curvatures, np.arange(100))[1].sure.any()


def test_where_a_logit_moves_far_single_precision_is_not_sure() -> None:
    """A record that is predicted surely, and only because of the one that is left out.

    Its remainder is taken from a fraction that is right for small changes alone.
    """
    rng = np.random.default_rng(15)
    x = rng.normal(size=2000)
    y = (rng.random(2000) < 0.5 + 0.005 * x).astype(int)
    lean = minimum(Regression.of(Binomial(), x[:, None], y, np.ones(2000), 1e-3), np.ones(2000))
    assert lean is not None
    slope = float(lean.model[0, 0])
    X, y = np.append(x, [11 / abs(slope), 2.0 * np.sign(slope)])[:, None], np.append(y, [1, 1])
    if slope < 0:
        X[-2:] *= -1
        y[-2:] = 0
    weights = np.append(np.ones(2001), 3.0)
    regression = Regression.of(Binomial(), X, y, weights, 1e-3)
    full = minimum(regression, weights)
    assert full is not None
    regression, full = turned(regression, full)
    left_out = LeftOut.of(regression, full, np.array([2001]))
    changes, near = left_out._nearly(left_out.curvatures, np.arange(1))
    moved = regression.largest_changes(changes)[0]
    assert bool(near.sure[0]) <= (moved <= 1.0)
    models, found = left_out.solve_frozen()
    assert found.all()
    weights[2001] = 0.0
    alone = minimum(regression, weights)
    assert alone is not None
    np.testing.assert_allclose(models[..., 0], alone.model, atol=1e-9)


def test_a_record_of_no_weight_is_found_where_it_is() -> None:
    """Its decrements are all zero: no rate can be told from them, and none is needed."""
    weights = without(17)
    regression = Regression.of(CASES[0][0], X, CASES[0][1], weights, 0.5)
    full = minimum(regression, weights)
    assert full is not None
    models, found = LeftOut.of(regression, full, RECORDS).solve_frozen()
    assert found.all()
    np.testing.assert_allclose(models[..., 3], full.model, atol=1e-12)


@pytest.mark.parametrize("answer", [np.nan, 1e3])
def test_what_single_precision_gets_wrong_costs_steps_and_nothing_else(
    left_out: LeftOut, answer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = left_out.solve_frozen()
    monkeypatch.setattr(Remainders, "of", lambda self, u, r: np.full(u.shape, answer, np.float32))
    models, found = left_out.solve_frozen()
    assert found.all()
    np.testing.assert_allclose(models, expected, atol=1e-9)


def test_where_lengths_say_too_little_each_logit_is_looked_at(
    left_out: LeftOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(left_out.regression.__dict__, "reach", 1e9)
    assert left_out.solve_frozen()[1].all()


def test_a_column_whose_curvature_may_have_vanished_is_not_certain(
    left_out: LeftOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "least_sharpness", lambda l2: 0.999)
    _, found = left_out.solve_frozen()
    assert found.all() == (left_out.regression.family.name == "gaussian")


def test_certainty_is_a_lower_bound_of_the_sharpness() -> None:
    for family, y in CASES[:2]:
        left_out = LeftOut.of(*solved(family, y, 1e-3), RECORDS)
        models, _ = left_out.solve_frozen()
        changes = left_out.regression.largest_changes(models - left_out.full.model[..., None])
        power = len(left_out.regression.basis) > 1
        bound = left_out.full.sharpness * left_out.kept * np.exp(-(1.0 + power) * changes)
        for column, record in enumerate(RECORDS):
            alone = minimum(left_out.regression, without(record))
            assert alone is not None
            assert 0 < bound[column] <= alone.sharpness


def test_a_record_with_a_direction_of_its_own_is_determined() -> None:
    features = np.column_stack([X, np.arange(40) == 17])
    regression = Regression.of(Gaussian(), features, NOISY, WEIGHTS, 0.0)
    full = minimum(regression, WEIGHTS)
    assert full is not None
    left_out = LeftOut.of(regression, full, RECORDS)
    assert left_out.determined.tolist() == [False, False, False, True]
    assert np.isfinite(left_out.one_step()).all()
    assert left_out.solve_frozen()[1].tolist() == [True, True, True, False]


def test_a_decrement_of_which_rounding_left_less_than_nothing_is_not_a_number() -> None:
    inverse = np.diag([1.0, -1e-3])  # as rounding leaves of one that has no digits
    curvatures = Curvatures(inverse, np.zeros((1, 2, 2, 2)), np.zeros((2, 2, 2)))
    gradients = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    steps, decrements = curvatures.steps(gradients)
    assert steps[0, 0, 0] == decrements[0] == 1.0
    assert np.isnan(decrements[1])
