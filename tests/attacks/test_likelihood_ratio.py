from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import leakscope
from leakscope.attacks.likelihood_ratio import FLOOR, ManyQueries, OfflineLira, OnlineLira, lira
from leakscope.errors import InputError, NotApplicableError
from leakscope.evidence import Evidence, Folds
from leakscope.metrics import roc


class Files:
    """A stack that is no array: it gives parts, and keeps count of the largest."""

    def __init__(self, scores):
        self._scores, self.shape, self.most = scores, scores.shape, 0

    def __getitem__(self, index):
        part = self._scores[index]
        self.most = max(self.most, part.size)
        return part


def draw(m, n, q=None, seed=0, share=0.5):
    """Scores, membership with two models at least on each side of each record, target's scores."""
    rng = np.random.default_rng(seed)
    shape = (n,) if q is None else (n, q)
    membership = rng.random((m, n)) < share
    membership[:2], membership[2:4] = True, False
    level, spread = 3 * rng.normal(size=shape), rng.lognormal(size=shape)
    scores = level + spread * rng.normal(size=(m, *shape))
    return scores, membership, level + spread * rng.normal(size=shape)


def slow_lira(scores, membership, target, online=True, fixed_variance=False):
    """One record and one query after another, by the formulas of the paper."""
    scores = np.asarray(scores, float).reshape(*np.shape(membership), -1)
    target = np.asarray(target, float).reshape(scores.shape[1], -1)
    _, n, queries = scores.shape
    total = np.zeros(n)
    for q in range(queries):
        sides = [
            (scores[membership[:, i], i, q], scores[~membership[:, i], i, q]) for i in range(n)
        ]
        used = [0, 1] if online else [1]
        squares = [sum(np.sum((s[k] - s[k].mean()) ** 2) for s in sides) for k in used]
        freedom = [sum(len(s[k]) - 1 for s in sides) for k in used]
        floor = FLOOR * (sum(squares) / sum(freedom) or 1.0)
        pooled = dict(zip(used, np.divide(squares, np.maximum(freedom, 1)), strict=True))
        for i in range(n):
            mean, spread = {}, {}
            for k in used:
                own = pooled[k] if fixed_variance else np.var(sides[i][k], ddof=1)
                mean[k], spread[k] = sides[i][k].mean(), np.sqrt(max(own, floor))
            if online:
                total[i] += norm.logpdf(target[i, q], mean[0], spread[0])
                total[i] -= norm.logpdf(target[i, q], mean[1], spread[1])
            else:
                total[i] += norm.logcdf(target[i, q], mean[1], spread[1])
                total[i] -= norm.logsf(target[i, q], mean[1], spread[1])
    return total


@pytest.mark.parametrize("fixed_variance", [False, True])
@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize(
    "size", [(4, 1, None), (5, 7, None), (9, 30, 1), (12, 1100, None), (20, 13, 4)]
)
def test_it_agrees_with_a_loop_over_records(size, online, fixed_variance):
    given = draw(*size)
    np.testing.assert_allclose(
        lira(*given, online, fixed_variance),
        slow_lira(*given, online, fixed_variance),
        rtol=1e-10,
        atol=1e-10,
    )


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(5, 12), q=st.integers(1, 3))
def test_it_agrees_wherever_the_scores_lie(seed, m, q):
    scores, membership, target = draw(m, 6, q, seed)
    shifted = lira(scores + 1e4, membership, target + 1e4)
    plain = lira(scores, membership, target)
    np.testing.assert_allclose(plain, slow_lira(scores, membership, target), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(plain, shifted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("online", [True, False])
def test_a_stack_is_read_in_parts_and_gives_the_same_numbers(online, monkeypatch):
    scores, membership, target = draw(8, 3000, 2)
    whole = lira(scores, membership, target, online)
    monkeypatch.setattr("leakscope.attacks.moments.READ", 8 * 2 * 700)
    stack = Files(scores)
    np.testing.assert_array_equal(lira(stack, membership, target, online), whole)
    assert stack.most == 8 * 2 * 700
    flat = Files(scores[:, :, 0])
    first = lira(scores[:, :, :1], membership, target[:, :1], online)
    np.testing.assert_array_equal(lira(flat, membership, target[:, 0], online), first)


def test_lists_and_whole_numbers_will_do():
    scores, membership, target = draw(6, 5)
    rounded = np.rint(10 * scores).astype(int)
    got = lira(rounded.tolist(), membership.tolist(), np.rint(target).astype(int).tolist())
    np.testing.assert_array_equal(got, lira(rounded * 1.0, membership, np.rint(target)))


def optimal_auc(shift, spread):
    """The area under the Neyman–Pearson curve of N(shift, spread²) against N(0, 1).

    The ratio is a square in the score, so that its distribution on each side is that of
    (u + c)² or of u: the area is an integral over the density of one side.
    """
    if spread == 1:
        return norm.cdf(shift / np.sqrt(2))
    centre = -shift / (spread**2 - 1)  # where the log-ratio has its one extremum
    sign = 1 if spread > 1 else -1

    def others_below(t):
        r = abs(t - centre)
        inner = norm.cdf(centre + r) - norm.cdf(centre - r)
        return inner if sign > 0 else 1 - inner

    area, _ = quad(
        lambda t: norm.pdf(t, shift, spread) * others_below(t), -np.inf, np.inf, limit=200
    )
    return area


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "spread"), [(1.0, 1.0), (0.8, 0.5), (0.5, 2.0), (0.0, 0.4)])
@pytest.mark.parametrize("fixed_variance", [False, True])
def test_it_reaches_the_neyman_pearson_optimum(shift, spread, fixed_variance):
    """Records differ in level only, so that one ratio is optimal for all of them."""
    rng = np.random.default_rng(7)
    m, n = 2000, 3000
    level = 5 * rng.normal(size=n)
    inside = rng.random((m + 1, n)) < 0.5
    noise = rng.normal(size=(m + 1, n))
    scores = level + np.where(inside, shift + spread * noise, noise)
    found = roc(
        lira(scores[:-1], inside[:-1], scores[-1], fixed_variance=fixed_variance), inside[-1]
    )
    best = optimal_auc(shift, spread)
    assert found.auc.low <= best <= found.auc.high
    assert best > 0.55


def test_one_variance_for_all_is_no_match_for_records_that_differ():
    rng = np.random.default_rng(8)
    m, n = 200, 4000
    spread = np.where(np.arange(n) % 2 == 0, 0.25, 4.0)
    inside = rng.random((m + 1, n)) < 0.5
    scores = inside + spread * rng.normal(size=(m + 1, n))
    own, one = (
        roc(lira(scores[:-1], inside[:-1], scores[-1], fixed_variance=fixed), inside[-1])
        for fixed in (False, True)
    )
    assert own.auc.low > one.auc.high


@pytest.mark.parametrize("online", [True, False])
def test_a_target_that_knows_nobody_is_at_chance(online):
    rng = np.random.default_rng(9)
    scores, membership, target = draw(30, 20_000, seed=3)
    sides = rng.random(20_000) < 0.5
    found = roc(lira(scores, membership, target, online), sides, confidence=1 - 1e-6)
    assert found.auc.low < 0.5 < found.auc.high


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("fixed_variance", [True, False])
def test_nothing_that_varies_tells_nothing(online, fixed_variance):
    _, membership, _ = draw(8, 40)
    constant = np.broadcast_to(0.1 + np.arange(40) / 3, (8, 40))
    got = lira(constant, membership, constant[0], online, fixed_variance)
    np.testing.assert_array_equal(got, np.zeros(40))


def test_sides_without_any_spread_are_told_apart_by_the_nearer_mean():
    """Sums of equal numbers round: the variance must be taken for the 0 it is."""
    _, membership, _ = draw(23, 60)
    scores = np.where(membership, 0.1, -0.7) + np.arange(60) / 7
    inside = np.arange(60) % 2 == 0
    target = np.where(inside, 0.1, -0.7) + np.arange(60) / 7
    got = lira(scores, membership, target)
    # A variance of a hundredth of 1, and means 0.8 apart.
    np.testing.assert_allclose(got, np.where(inside, 1, -1) * 0.8**2 / 0.02, rtol=1e-9)


def test_members_of_whom_every_model_is_equally_sure_by_hand():
    """As of a tree: a variance of 0 counts as a hundredth of the pooled one."""
    membership = np.arange(8)[:, None] < np.full((1, 50), 4)
    out = np.array([1.0, 3.0, 1.0, 3.0])
    scores = np.where(membership, 4.0, np.tile(out, 2)[:, None])
    pooled = 50 * 4.0 / (50 * 6)  # squares of 1 around 2 on one side, none on the other
    expected = norm.logpdf(3.5, 4.0, np.sqrt(FLOOR * pooled)) - norm.logpdf(3.5, 2, np.sqrt(4 / 3))
    np.testing.assert_allclose(lira(scores, membership, np.full(50, 3.5)), expected, rtol=1e-12)
    fixed = lira(scores, membership, np.full(50, 3.5), fixed_variance=True)
    np.testing.assert_allclose(fixed, expected, rtol=1e-12)


def test_queries_add_up():
    scores, membership, target = draw(10, 20, 3)
    for online in (True, False):
        apart = sum(lira(scores[:, :, q], membership, target[:, q], online) for q in range(3))
        np.testing.assert_allclose(lira(scores, membership, target, online), apart, rtol=1e-12)


def test_offline_has_no_ties_where_the_probability_rounds_to_0_or_1():
    scores, membership, _ = draw(10, 4)
    target = np.linspace(-1000, 1000, 41)
    copies = np.repeat(scores[:, :1], 41, axis=1)
    got = lira(copies, np.repeat(membership[:, :1], 41, axis=1), target, online=False)
    assert (np.diff(got) > 0).all()


def test_offline_never_looks_at_the_models_with_the_record():
    scores, membership, target = draw(10, 30)
    other = np.where(membership, 100.0, scores)
    np.testing.assert_allclose(
        lira(scores, membership, target, online=False),
        lira(other, membership, target, online=False),
        rtol=1e-10,
    )
    outside = np.zeros((6, 30), bool)
    assert np.isfinite(lira(scores[:6], outside, target, online=False)).all()


@pytest.mark.parametrize(
    ("online", "fixed", "inside", "message"),
    [
        (True, False, [1, 0, 0, 0], "Of 3 records, 3 have fewer than 2 shadow models with them"),
        (True, False, [1, 1, 1, 0], "3 have fewer than 2 shadow models without them; train more"),
        (False, False, [1, 1, 1, 0], "3 have fewer than 2 shadow models without them"),
        (True, True, [0, 0, 0, 0], "3 have fewer than 1 shadow models with them"),
        (False, True, [1, 1, 1, 1], "3 have fewer than 1 shadow models without them"),
        (True, True, [1, 0, 0, 0], "No record has two shadow models on the same side"),
    ],
)
def test_too_few_models_are_refused(online, fixed, inside, message):
    membership = np.repeat(np.array(inside, bool)[:, None], 3, axis=1)
    with pytest.raises(NotApplicableError, match=message):
        lira(np.ones((4, 3)), membership, np.ones(3), online, fixed)


def test_only_the_records_that_lack_models_are_counted():
    scores, membership, target = draw(6, 9)
    membership[:, 4] = False
    with pytest.raises(NotApplicableError, match=r"Of 9 records, 1 have fewer than 2 .* with them"):
        lira(scores, membership, target)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.ones(4)}, r"shape \(models, records\) or .* got \(4,\)"),
        ({"scores": np.ones((0, 3))}, r"got \(0, 3\)"),
        ({"scores": np.full((6, 3), "a")}, "must be numbers: could not convert"),
        ({"membership": np.ones((6, 3))}, "true or false for each model and record, got float64"),
        ({"membership": np.ones((3, 6), bool)}, r"shape \(6, 3\) of the scores, got \(3, 6\)"),
        ({"target": np.ones(4)}, r"must have the shape \(3,\) .*, got \(4,\)"),
        ({"target": np.ones((3, 2))}, r"must have the shape \(3,\) .*, got \(3, 2\)"),
        ({"target": ["a", "b", "c"]}, "target's scores must be numbers, got <U1"),
        ({"target": [1.0, np.nan, np.inf]}, "of 2 records are not, the first of record 1 "),
        ({"scores": np.ones((6, 3, 2))}, r"must have the shape \(3, 2\) .*, got \(3,\)"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(change, message):
    scores, membership, target = draw(6, 3)
    given = {"scores": scores, "membership": membership, "target": target} | change
    with pytest.raises(InputError, match=message):
        lira(given["scores"], given["membership"], given["target"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_named(value, monkeypatch):
    scores, membership, target = draw(6, 50)
    scores[3, 41] = value
    monkeypatch.setattr("leakscope.attacks.moments.READ", 6 * 16)
    with pytest.raises(InputError, match="model 3 for record 41 "):
        lira(scores, membership, target)


def evidence(scores, membership, target):
    n = len(target)
    return Evidence(
        task="classification",
        observations=target.reshape(n, -1),
        labels=np.zeros(n, dtype=np.int64),
        classes=2,
        folds=Folds(np.arange(n) % 2 == 0, np.arange(n) % 5 == 0),
        seed=0,
        shadow_membership=membership,
        shadow_observations=scores.reshape(*membership.shape, -1),
    )


def halves(m, n):
    """Each record in exactly half of the models."""
    return np.random.default_rng(1).permuted(np.arange(m)[:, None] < np.full(n, m // 2), axis=0)


@pytest.mark.parametrize(
    ("attack", "online", "q"),
    [(OnlineLira, True, 1), (OfflineLira, False, 1), (ManyQueries, True, 3)],
    ids=["lira", "lira-offline", "lira-queries"],
)
@pytest.mark.parametrize("fixed", [None, True, False])
def test_the_attacks_are_the_function(attack, online, q, fixed):
    for m, few in ((14, True), (16, False)):
        scores, _, target = draw(m, 40, q)
        membership = halves(m, 40)
        given = evidence(scores, membership, target)
        expected = lira(scores, membership, target, online, few if fixed is None else fixed)
        np.testing.assert_array_equal(attack(fixed).score(given), expected)


def test_few_models_on_one_side_are_few():
    scores, _, target = draw(40, 30)
    rare = np.arange(40)[:, None] < np.full(30, 4)
    given = evidence(scores, rare, target)
    assert OnlineLira().threshold(given) is None
    np.testing.assert_array_equal(
        OfflineLira().score(given), lira(scores, rare, target, online=False)
    )


def test_equally_likely_is_the_threshold_where_each_record_has_its_variances():
    scores, _, target = draw(16, 40)
    given = evidence(scores, halves(16, 40), target)
    assert OnlineLira().threshold(given) == 0.0
    assert OnlineLira(fixed_variance=True).threshold(given) is None
    assert OfflineLira().threshold(given) is None
    assert ManyQueries().threshold(given) is None


def test_several_queries_run_on_request_only():
    assert ManyQueries.on_request
    assert not OnlineLira.on_request
    assert OnlineLira.shadows == 4


def test_the_functions_are_public_and_the_package_stays_light():
    assert leakscope.attacks.lira is lira
    with pytest.raises(
        AttributeError, match=r"module 'leakscope\.attacks' has no attribute 'lyra'"
    ):
        _ = leakscope.attacks.lyra
    program = (
        "import sys, leakscope.attacks; print('scipy' in sys.modules, 'sklearn' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "False"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scores_whose_squares_overflow_are_refused():
    rng = np.random.default_rng(0)
    scores, membership = rng.normal(size=(12, 5)), np.arange(60).reshape(12, 5) % 2 == 0
    with pytest.raises(InputError, match="divide all of them, the target's too, by the same"):
        lira(1e200 * scores, membership, 1e200 * rng.normal(size=5))
