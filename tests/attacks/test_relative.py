from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata

import leakscope
from leakscope.attacks.relative import OfflineRmia, OnlineRmia, rmia
from leakscope.errors import InputError, NotApplicableError
from leakscope.evidence import Evidence, Folds
from leakscope.metrics import roc


def draw(m, n, seed=0):
    """Probabilities, membership with a model at least on each side, the target's probabilities."""
    rng = np.random.default_rng(seed)
    membership = rng.random((m, n)) < 0.5
    membership[0], membership[1] = True, False
    level = rng.normal(size=n)
    return (
        expit(level + membership + rng.normal(size=(m, n))),
        membership,
        expit(level + rng.normal(size=n)),
    )


def slow_ratio(probabilities, membership, target, online, a):
    ratios = []
    for i in range(len(target)):
        outside = probabilities[~membership[:, i], i].mean()
        if online:
            usual = (probabilities[membership[:, i], i].mean() + outside) / 2
        else:
            usual = ((1 + a) * outside + (1 - a)) / 2
        ratios.append(target[i] / usual)
    return ratios


def slow_rmia(given, population=None, online=True, gamma=2.0, a=0.3):
    """Each record against each other one."""
    ratios = slow_ratio(*given, online, a)
    if population is None:
        others = [ratios[:i] + ratios[i + 1 :] for i in range(len(ratios))]
    else:
        shadows, target, *known = population
        if known:
            compared = slow_ratio(shadows, known[0], target, online, a)
        else:
            compared = [t / shadows[:, z].mean() for z, t in enumerate(target)]
        others = [compared] * len(ratios)
    return [
        sum(ratio >= gamma * other for other in compared) / len(compared)
        for ratio, compared in zip(ratios, others, strict=True)
    ]


@pytest.mark.parametrize("gamma", [0.7, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("size", [(2, 2), (3, 40), (16, 150)])
def test_it_agrees_with_a_double_loop(size, online, gamma):
    given = draw(*size)
    np.testing.assert_allclose(
        rmia(*given, online=online, gamma=gamma),
        slow_rmia(given, online=online, gamma=gamma),
        atol=1e-10,
    )


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_population_agrees_with_a_double_loop(online, known):
    given, (shadows, inside, target) = draw(8, 50), draw(8, 70, seed=1)
    population = (shadows, target, inside) if known else (shadows, target)
    np.testing.assert_allclose(
        rmia(*given, population=population, online=online, gamma=1.1, a=0.5),
        slow_rmia(given, population, online, 1.1, 0.5),
        atol=1e-10,
    )


def test_the_defaults_are_the_papers():
    given = draw(6, 60)
    np.testing.assert_array_equal(rmia(*given), rmia(*given, gamma=2.0, online=True))
    np.testing.assert_array_equal(
        rmia(*given, online=False), rmia(*given, online=False, gamma=2.0, a=0.3)
    )


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
def test_gamma_and_population_never_change_the_order(gamma):
    given, (shadows, _, target) = draw(8, 200), draw(8, 30, seed=2)
    order = np.argsort(slow_ratio(*given, True, 0.3))
    for population in (None, (shadows, target)):
        scores = rmia(*given, gamma=gamma, population=population)
        assert (np.diff(scores[order]) >= 0).all()


def test_with_gamma_1_the_score_is_the_rank():
    given = draw(8, 200)
    ranks = rankdata(slow_ratio(*given, True, 0.3), method="max")
    np.testing.assert_allclose(rmia(*given, gamma=1.0), (ranks - 1) / 199, atol=1e-12)


def test_equal_records_dominate_each_other_at_gamma_1_and_not_above():
    same = np.full((4, 5), 0.5)
    membership = np.arange(4)[:, None] < np.full(5, 2)
    np.testing.assert_array_equal(rmia(same, membership, same[0], gamma=1.0), np.ones(5))
    np.testing.assert_array_equal(rmia(same, membership, same[0]), np.zeros(5))


def test_members_are_found_and_strangers_are_not():
    rng = np.random.default_rng(4)
    m, n = 20, 20_000
    membership = rng.random((m + 1, n)) < 0.5
    membership[0], membership[1] = True, False
    level = 2 * rng.normal(size=n)
    seen = expit(level + 1.5 * membership + rng.normal(size=(m + 1, n)))
    for online in (True, False):
        scores = rmia(seen[:m], membership[:m], seen[m], online=online, gamma=1.0)
        assert roc(scores, membership[m]).auc.low > 0.6
        stranger = expit(level + rng.normal(size=n))
        scores = rmia(seen[:m], membership[:m], stranger, online=online, gamma=1.0)
        found = roc(scores, rng.random(n) < 0.5, confidence=1 - 1e-6)
        assert found.auc.low < 0.5 < found.auc.high


class Files:
    def __init__(self, scores):
        self._scores, self.shape = scores, scores.shape

    def __getitem__(self, index):
        return self._scores[index]


def test_a_stack_gives_the_same_numbers():
    shadows, membership, target = draw(8, 300)
    expected = rmia(shadows, membership, target)
    for stack in (Files(shadows), Files(shadows[:, :, None])):
        np.testing.assert_array_equal(rmia(stack, membership, target), expected)
        np.testing.assert_array_equal(
            rmia(shadows, membership, target, population=(stack, target)),
            rmia(shadows, membership, target, population=(shadows, target)),
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.0}, "gamma is a ratio of ratios and must be above 0, got 0.0"),
        ({"gamma": np.inf}, "must be above 0, got inf"),
        ({"a": 1.5}, "a must be between 0 and 1, got 1.5"),
        ({"population": (np.ones((4, 2)),)}, "A population is a pair .*, got 1 arrays"),
        ({"population": (np.ones((4, 2)), np.ones(3))}, r"shape \(2,\) .*, got \(3,\)"),
        ({"population": (np.zeros((4, 2)), np.ones(2))}, "above 0 and at most 1, got 0.0; clip"),
    ],
)
def test_options_out_of_range_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        rmia(*draw(4, 6), **change)


@pytest.mark.parametrize("value", [0.0, -0.5, 1.5, np.nan])
def test_what_is_no_probability_is_refused(value):
    shadows, membership, target = draw(4, 6)
    shadows[2, 3] = value
    with pytest.raises(InputError, match=f"above 0 and at most 1, got {value}; clip them"):
        rmia(shadows, membership, target)


def test_a_target_that_is_no_probability_is_refused():
    shadows, membership, target = draw(4, 6)
    target[1] = 0.0
    with pytest.raises(InputError, match=r"above 0 and at most 1, got 0\.0"):
        rmia(shadows, membership, target)


def test_one_record_and_several_numbers_are_refused():
    with pytest.raises(InputError, match="One record has no others"):
        rmia(*draw(4, 1))
    wide = np.full((4, 3, 2), 0.5)
    with pytest.raises(InputError, match="One probability per record and model is needed, got 2"):
        rmia(wide, np.zeros((4, 3), bool), wide[0], online=False)


def test_too_few_models_are_refused():
    shadows, _, target = draw(4, 6)
    with pytest.raises(NotApplicableError, match="6 have fewer than 1 shadow models with them"):
        rmia(shadows, np.zeros((4, 6), bool), target)
    with pytest.raises(NotApplicableError, match="6 have fewer than 1 shadow models without them"):
        rmia(shadows, np.ones((4, 6), bool), target, online=False)
    assert np.isfinite(rmia(shadows, np.zeros((4, 6), bool), target, online=False)).all()


def test_the_attacks_are_the_function_on_margins():
    shadows, membership, target = draw(6, 80)
    given = Evidence(
        task="classification",
        observations=np.log(target / (1 - target))[:, None],
        labels=np.zeros(80, dtype=np.int64),
        classes=2,
        folds=Folds(np.arange(80) % 2 == 0, np.arange(80) % 5 == 0),
        seed=0,
        shadow_membership=membership,
        shadow_observations=np.log(shadows / (1 - shadows))[:, :, None],
    )
    online, offline = OnlineRmia(gamma=1.5), OfflineRmia(gamma=1.5, a=0.6)
    np.testing.assert_allclose(
        online.score(given), rmia(shadows, membership, target, gamma=1.5), atol=1e-12
    )
    np.testing.assert_allclose(
        offline.score(given),
        rmia(shadows, membership, target, online=False, gamma=1.5, a=0.6),
        atol=1e-12,
    )
    assert online.threshold(given) is None
    assert len(np.unique(OnlineRmia().score(given))) == 80


def test_the_function_is_public():
    assert leakscope.attacks.rmia is rmia
