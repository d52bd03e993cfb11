from __future__ import annotations

import numpy as np
import pytest

import leakscope.exact.nearing as module
from leakscope.exact.columns import LeftOut
from leakscope.exact.families import Binomial, Family, Multinomial
from leakscope.exact.nearing import nearly
from leakscope.exact.newton import minimum
from leakscope.exact.penalized import Regression
from leakscope.exact.remainders import Remainders

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
NOISY = X[:, 0] + RNG.normal(size=60)
CASES: list[tuple[Family, np.ndarray]] = [
    (Binomial(), (NOISY > 0).astype(int)),
    (Multinomial(3), np.digitize(NOISY, [-0.5, 0.5])),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0].name)
def left_out(request: pytest.FixtureRequest) -> LeftOut:
    family, y = request.param
    regression = Regression.of(family, X, y, np.ones(60), 0.5)
    full = minimum(regression, np.ones(60))
    assert full is not None
    return LeftOut.of(regression, full, np.arange(60))


def near(left_out: LeftOut, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The changes that the remainders lead to, rates, and what is sure."""
    first = left_out.curvatures.steps(left_out.own_gradients)
    found = nearly(
        Remainders.around(left_out.regression, left_out.full.model),
        left_out.curvatures.single(),
        first,
        left_out.records,
        tolerance,
        1.0,
    )
    assert found.remainders.dtype == np.float32
    added = left_out.curvatures.steps(found.remainders.astype(np.float64))[0]
    return first[0] - added, found.rates, found.sure


def off(left_out: LeftOut, changes: np.ndarray) -> np.ndarray:
    """How far the changes are from those of the optima without each record, relative, (m,)."""
    exact = left_out.solve_frozen()[0] - left_out.full.model[..., None]
    lengths = np.linalg.norm(exact, axis=(0, 1))
    return np.asarray(np.linalg.norm(changes - exact, axis=(0, 1)) / lengths)


def test_the_changes_are_those_of_the_optima_in_single_precision(left_out: LeftOut) -> None:
    changes, rates, sure = near(left_out, 0.0)
    assert off(left_out, changes).max() < 1e-6
    assert ((rates > 0) & (rates < 0.7)).all()
    assert not sure.any()  # nothing is known without a rounding error


def test_mixing_saves_rounds(left_out: LeftOut, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, of = list[int](), Remainders.of

    def counted(
        self: Remainders, changes: np.ndarray, records: np.ndarray, roughly: bool
    ) -> np.ndarray:
        columns.append(len(records))
        return of(self, changes, records, roughly)

    monkeypatch.setattr(Remainders, "of", counted)
    mixed, *_ = near(left_out, 1e-10)
    few = sum(columns)
    monkeypatch.setattr(module, "_share", lambda now, *others: np.zeros(len(now), np.float32))
    plain, *_ = near(left_out, 1e-10)
    assert few < 0.9 * (sum(columns) - few)
    assert np.median(off(left_out, mixed)) < 1e-5
    assert np.median(off(left_out, plain)) < 1e-5


def test_after_one_round_the_next_decrement_is_left_to_tell_the_rate(left_out: LeftOut) -> None:
    """The first remainder over the first step is no rate: of a known one, nothing is sure by it."""
    first = left_out.curvatures.steps(left_out.own_gradients)
    args = (
        Remainders.around(left_out.regression, left_out.full.model),
        left_out.curvatures.single(), first, left_out.records,
    )  # fmt: skip
    wide = nearly(*args, 1e2, 1.0)  # whatever is found first will do, were it not for its rate
    assert wide.sure.all()
    assert np.isinf(wide.last).all()  # in two rounds
    unknown = nearly(*args, 1e-9, 1.0)
    gone = np.isfinite(unknown.last)
    assert (unknown.last[gone] <= first[1][gone]).all()
    assert not unknown.sure[gone].any()


def test_a_wider_tolerance_leaves_sooner(left_out: LeftOut) -> None:
    assert off(left_out, near(left_out, 1e-2)[0]).max() > 1e-4


def test_a_column_that_does_not_shrink_stays_where_it_was(
    left_out: LeftOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Remainders, "of", lambda self, changes, *_, **__: np.full_like(changes, np.nan)
    )
    changes, rates, sure = near(left_out, 1e-10)
    np.testing.assert_allclose(changes, left_out.one_step(), rtol=0, atol=1e-14)
    assert (rates == 1).all()
    assert not sure.any()


def test_a_remainder_that_is_known_well_enough_needs_no_exact_step(left_out: LeftOut) -> None:
    """At a tolerance of 1e-4 all of them are, at 1e-10 hardly any of 60 records."""
    changes, _, sure = near(left_out, 1e-4)
    assert sure.all()
    gradients = left_out.regression.gradients(
        left_out.full.model[..., None] + changes, np.ones(60), left_out.records
    )
    assert left_out.curvatures.steps(gradients)[1].max() < 1e-4
    assert near(left_out, 1e-10)[2].mean() < 0.1


def test_the_first_remainder_grows_along_the_first_step(
    left_out: LeftOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a square function of one number, δ = δ₀ + r δ², the next step is closer by far."""
    first, r = 0.1, 0.3
    exact = (1 - np.sqrt(1 - 4 * r * first)) / (2 * r)
    along = np.array([-r * first**2 * first], np.float32)
    growth = float(module._growth(along, np.array([first]))[0])
    assert abs(first + growth * r * first**2 - exact) < 0.1 * abs(first + r * first**2 - exact)
    np.testing.assert_array_equal(module._growth(np.zeros(1, np.float32), np.zeros(1)), 1.0)
    columns, of = list[int](), Remainders.of

    def counted(
        self: Remainders, changes: np.ndarray, records: np.ndarray, roughly: bool
    ) -> np.ndarray:
        columns.append(len(records))
        return of(self, changes, records, roughly)

    monkeypatch.setattr(Remainders, "of", counted)
    near(left_out, 1e-10)
    few = sum(columns)
    monkeypatch.setattr(module, "_growth", lambda along, first: np.ones_like(along))
    near(left_out, 1e-10)
    assert few < sum(columns) - few


def test_the_share_is_the_one_that_makes_the_mixture_smallest() -> None:
    now, last = RNG.normal(size=(2, 5, 8))
    share = module._share(
        np.linalg.norm(now, axis=0),
        np.linalg.norm(last, axis=0),
        np.einsum("dm,dm->m", now, last).astype(np.float32),
    )
    sizes = [np.linalg.norm(now + part * (last - now), axis=0) for part in (share, share + 0.01)]
    assert (sizes[0] < sizes[1]).all()
    assert (sizes[0] < np.linalg.norm(now + (share - 0.01) * (last - now), axis=0)).all()
    assert module._share(np.ones(1), np.ones(1), np.ones(1, np.float32)) == 0


def test_nothing_is_known_of_a_curvature_that_has_no_inverse(left_out: LeftOut) -> None:
    first = left_out.curvatures.steps(left_out.own_gradients)
    around = Remainders.around(left_out.regression, left_out.full.model)
    found = nearly(around, left_out.curvatures.single(), first, left_out.records, 1e-4, 2e5)
    assert found.remainders.shape == first[0].shape
    assert not found.remainders.any()
    assert not found.sure.any()
    assert (found.rates == 1).all()
    assert (found.last == np.inf).all()


def test_the_first_remainder_alone_may_be_rough(
    left_out: LeftOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, of = list[bool](), Remainders.of

    def told(
        self: Remainders, changes: np.ndarray, records: np.ndarray, roughly: bool
    ) -> np.ndarray:
        asked.append(roughly)
        return of(self, changes, records, roughly)

    monkeypatch.setattr(Remainders, "of", told)
    near(left_out, 1e-10)
    assert asked[:2] == [True, False]
    assert not any(asked[1:])
