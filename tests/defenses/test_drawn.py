from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import pytest

from leakscope.defenses import as_defense
from leakscope.defenses.crowd import CrowdedExplanations
from leakscope.defenses.drawn import Drawn, ExponentialExplanations, most_often_shown
from leakscope.defenses.explanations import Guard
from leakscope.defenses.refusal import RefusedExplanations
from leakscope.errors import InputError

Make = Callable[..., Any]


def peeled(scores: dict[int, float], k: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """The chance of each sequence of k records, drawn one after the other; scores from 0 to 1."""
    chances = {}
    for sequence in permutations(scores, k):
        left, chance = dict(scores), 1.0
        for record in sequence:
            weights = {one: np.exp(epsilon / k * score / 2) for one, score in left.items()}
            chance *= weights[record] / sum(weights.values())
            del left[record]
        chances[sequence] = chance
    return chances


def test_all_draws_at_once_are_one_draw_after_the_other(constant: Make) -> None:
    influences, queries = np.array([0.0, 0.004, -0.03, 0.008]), 20_000
    drawn = ExponentialExplanations(8.0, clip=0.01, key="tests").around(constant(influences))
    shown, values = drawn.explain(np.arange(queries, dtype=float)[:, None], 2)
    assert not values.any()
    scores = dict(enumerate(np.minimum(np.abs(influences), 0.01) / 0.01))
    chances = peeled(scores, 2, 8.0)
    assert sum(chances.values()) == pytest.approx(1.0)
    counts = dict(zip(*np.unique(shown @ [10, 1], return_counts=True), strict=True))
    for (first, second), chance in chances.items():
        off = counts[10 * first + second] - queries * chance
        assert abs(off) < 6 * np.sqrt(queries * chance * (1 - chance))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2), (5, 3)])
def test_the_promise_holds_for_a_record_more_or_less(n: int, k: int, epsilon: float) -> None:
    _, delta = ExponentialExplanations(epsilon, key="tests").promise(n, k)
    rng = np.random.default_rng(0)
    new = n - 1
    for trial in range(40):
        # Scores may change in any way when a record comes; ends are the worst.
        draw = rng.random if trial % 2 else lambda size: rng.integers(2, size=size).astype(float)
        without = peeled(dict(enumerate(draw(new))), k, epsilon)
        with_it = peeled(dict(enumerate(draw(n))), k, epsilon)
        shown = sum(chance for drawn, chance in with_it.items() if new in drawn)
        assert shown <= delta + 1e-12
        for drawn, chance in without.items():
            assert with_it[drawn] <= np.exp(epsilon) * chance * (1 + 1e-12)
            assert chance <= np.exp(epsilon) * n / (n - k) * with_it[drawn] * (1 + 1e-12)
        pairs = [(chance, without.get(drawn, 0.0)) for drawn, chance in with_it.items()]
        for sides in (pairs, [(second, first) for first, second in pairs]):
            over = sum(max(one - np.exp(epsilon) * other, 0.0) for one, other in sides)
            assert over <= delta + 1e-12


@pytest.mark.parametrize(("n", "k", "epsilon"), [(4, 1, 3.0), (5, 2, 3.0), (4, 3, 0.5)])
def test_the_bound_is_reached_by_one_record_above_all_others(
    n: int, k: int, epsilon: float
) -> None:
    chances = peeled({0: 1.0, **dict.fromkeys(range(1, n), 0.0)}, k, epsilon)
    shown = sum(chance for drawn, chance in chances.items() if 0 in drawn)
    assert most_often_shown(n, k, epsilon) == pytest.approx(shown, abs=1e-12)


def test_the_bound_has_its_ends() -> None:
    assert most_often_shown(50, 5, 1e-9) == pytest.approx(5 / 50)
    assert most_often_shown(5, 5, 1.0) == 1.0
    assert most_often_shown(2000, 5, 1e6) == 1.0
    assert most_often_shown(2000, 5, 10.0) == pytest.approx(5 * np.e / 2000, rel=0.01)


def test_queries_add_up() -> None:
    defense = ExponentialExplanations(2.0, key="tests")
    epsilon, delta = defense.promise(2000, 5)
    assert epsilon == 2.0
    assert defense.promise(2000, 5, queries=3) == (6.0, pytest.approx(3 * delta))
    assert defense.promise(10, 5, queries=9)[1] == 1.0
    with pytest.raises(InputError, match="option k must be a whole number from 1 to 4, got 5"):
        defense.promise(4, 5)


def test_the_same_query_has_the_same_answer_in_whatever_company(linear: Make) -> None:
    explainer = linear()
    drawn = ExponentialExplanations(5.0, key="tests").around(explainer)
    queries = np.random.default_rng(1).normal(size=(20, 3))
    shown, _ = drawn.explain(queries, 4)
    again, _ = drawn.explain(queries[::-1], 4)
    np.testing.assert_array_equal(shown, again[::-1])
    np.testing.assert_array_equal(shown[3:4], drawn.explain(queries[3:4], 4)[0])
    # Asking a hundred times shows no more than asking once.
    np.testing.assert_array_equal(
        drawn.explain(np.tile(queries[0], (100, 1)), 4)[0], np.tile(shown[0], (100, 1))
    )
    zero = drawn.explain(np.zeros((1, 3)), 4)[0]
    np.testing.assert_array_equal(zero, drawn.explain(-np.zeros((1, 3)), 4)[0])


def test_another_key_and_another_digit_draw_anew(linear: Make) -> None:
    explainer = linear(200)
    queries = np.random.default_rng(1).normal(size=(20, 3))

    def shown(key: str, moved: float = 0.0, k: int = 4) -> np.ndarray:
        defense = ExponentialExplanations(1.0, key=key)
        found, _ = defense.around(explainer).explain(queries + moved, k)
        return np.asarray(found)

    plain = shown("a")
    assert (plain == shown("b")).mean() < 0.2
    assert (plain == shown("a", moved=1e-12)).mean() < 0.2
    assert (plain[:, :3] == shown("a", k=3)).mean() < 0.2


def test_another_epsilon_or_clip_with_the_same_key_draws_anew(constant: Make) -> None:
    # Without influence the noise alone decides, so that the same noise would draw the same.
    explainer, queries = constant(np.zeros(200)), np.arange(50.0)[:, None]

    def shown(*options: float) -> np.ndarray:
        defense = ExponentialExplanations(*options, key="tests")
        return np.asarray(defense.around(explainer).explain(queries, 4)[0])

    np.testing.assert_array_equal(shown(1.0, 0.01), shown(1.0, 0.01))
    assert (shown(1.0, 0.01) == shown(2.0, 0.01)).mean() < 0.1
    assert (shown(1.0, 0.01) == shown(1.0, 0.02)).mean() < 0.1


def test_the_key_is_a_new_secret_for_each_object(linear: Make) -> None:
    first, second = (as_defense("explain-exponential:50") for _ in range(2))
    assert len(bytes.fromhex(first.key)) == 32
    assert first.key != second.key
    assert first.key not in repr(first)
    explainer = linear(200)
    shown, other = (one.around(explainer).explain(explainer.X, 4)[0] for one in (first, second))
    # 800 places of 200 records: by chance some 4 of them agree.
    assert (shown == other).mean() < 0.2
    sent = pickle.loads(pickle.dumps(first)).around(explainer)
    np.testing.assert_array_equal(sent.explain(explainer.X, 4)[0], shown)


@pytest.mark.parametrize("kind", [np.float32, np.int64, ">f8"])
def test_the_same_numbers_in_another_type_are_the_same_query(linear: Make, kind: Any) -> None:
    drawn = ExponentialExplanations(1.0, key="tests").around(linear(200))
    queries = np.random.default_rng(1).integers(-9, 9, size=(20, 3)).astype(float)
    np.testing.assert_array_equal(
        drawn.explain(queries.astype(kind), 4)[0], drawn.explain(queries, 4)[0]
    )


def test_with_a_large_epsilon_it_is_the_true_explanation(linear: Make) -> None:
    explainer = linear()
    queries = np.random.default_rng(1).normal(size=(20, 3))
    drawn = ExponentialExplanations(1e7, clip=1.0, key="tests").around(explainer)
    np.testing.assert_array_equal(drawn.explain(queries, 5)[0], explainer.explain(queries, 5)[0])


def test_influence_above_the_clip_counts_as_the_clip(constant: Make) -> None:
    explainer = constant(np.array([0.0, 0.02, 0.9, 0.0]))
    shown, _ = (
        ExponentialExplanations(1e4, clip=0.01, key="tests")
        .around(explainer)
        .explain(np.arange(400.0)[:, None], 1)
    )
    counts = np.bincount(shown[:, 0], minlength=4)
    assert counts[0] == counts[3] == 0
    assert 140 < counts[1] < 260


def test_who_may_not_be_shown_is_not_drawn(linear: Make) -> None:
    explainer = linear()
    crowd = CrowdedExplanations(3).around(explainer)
    drawn = ExponentialExplanations(1.0, key="tests").around(crowd)
    queries = np.random.default_rng(1).normal(size=(50, 3))
    alone = set(np.flatnonzero(crowd.alone))
    assert alone
    shown, _ = drawn.explain(queries, 20)
    assert alone.isdisjoint(shown.ravel().tolist())
    company = 30 - len(alone)
    np.testing.assert_array_equal((shown < 0).sum(axis=1), 20 - company)
    assert (shown[:, :company] >= 0).all()


def test_influences_are_not_told(linear: Make) -> None:
    explainer = linear()
    drawn = ExponentialExplanations(1.0, key="tests").around(explainer)
    assert isinstance(drawn, Drawn)
    parts = [part for _, part in drawn.influence_chunks(explainer.X)]
    np.testing.assert_array_equal(np.concatenate(parts), np.zeros((30, 30)))


@pytest.mark.parametrize("tolerance", [0.0, 1.0, 10.0])
def test_one_draw_of_k_from_those_who_are_not_the_query(linear: Make, tolerance: float) -> None:
    explainer = linear(60)
    others = RefusedExplanations(tolerance, show_others=True)
    draw = ExponentialExplanations(20.0, key="tests")

    class Noted(type(explainer)):  # type: ignore[misc]
        asked: ClassVar[list[int]] = []

        def influence_chunks(self, X: np.ndarray) -> Any:
            self.asked.append(len(X))
            return super().influence_chunks(X)

        def explain(self, X: np.ndarray, k: int) -> Any:
            pytest.fail("a draw looks at all records once")

    noted = Noted(explainer.X, explainer.y, explainer.G)
    for safer in (others.around(draw.around(noted)), draw.around(others.around(noted))):
        Noted.asked.clear()
        shown, _ = safer.explain(explainer.X, 5)
        assert Noted.asked == [60]
        # The same noise over the records that are left, with ε/5 for each draw and no more.
        alone = draw.around(explainer)
        gaps = (explainer.X[:, None] - explainer.X) / explainer.X.std(axis=0)
        near = np.linalg.norm(gaps, axis=2) <= max(tolerance, 1e-9)
        for row, query in enumerate(explainer.X):
            scores = np.minimum(np.abs(explainer.influence(query[None])[0]), 0.01) / 0.01
            exponents = 20.0 / 5 * scores / 2 + alone._noise(query, 5)
            left = [one for one in np.argsort(-exponents) if not near[row, one]][:5]
            np.testing.assert_array_equal(shown[row], left + [-1] * (5 - len(left)))


def test_the_chances_beside_a_hidden_record_are_those_of_the_others(constant: Make) -> None:
    influences, asked = np.array([0.0, 0.004, -0.03, 0.008, 0.03]), 20_000
    # Each query is as near to record 4 as to make it hidden, and a query of its own.
    queries = 4.0 + np.arange(asked)[:, None] * 1e-7
    others = RefusedExplanations(0.1, show_others=True)
    draw = ExponentialExplanations(8.0, clip=0.01, key="tests")
    shown, _ = others.around(draw.around(constant(influences))).explain(queries, 2)
    scores = dict(enumerate(np.minimum(np.abs(influences[:4]), 0.01) / 0.01))
    counts = dict(zip(*np.unique(shown @ [10, 1], return_counts=True), strict=True))
    chances = peeled(scores, 2, 8.0)
    assert sum(counts.values()) == sum(counts[10 * one + two] for one, two in chances)
    for (first, second), chance in chances.items():
        off = counts[10 * first + second] - asked * chance
        assert abs(off) < 6 * np.sqrt(asked * chance * (1 - chance))


def test_a_draw_around_a_draw_is_refused(linear: Make) -> None:
    draw, other = (ExponentialExplanations(one, key="tests") for one in (5.0, 50.0))
    drawn = draw.around(linear())
    for inside in (
        drawn,
        RefusedExplanations().around(drawn),
        CrowdedExplanations(3).around(drawn),
    ):
        assert isinstance(inside, Guard)
        with pytest.raises(InputError, match="explain-exponential:50 is around an explainer that"):
            other.around(inside)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "option epsilon must be a finite number above 0, got 0.0"),
        ({"epsilon": 1.0, "clip": -1.0}, "option clip must be a finite number above 0, got -1.0"),
        ({"epsilon": 1.0, "key": "a" * 65}, "key must have from 1 to 64 bytes, got 65; leave it"),
        ({"epsilon": 1.0, "key": ""}, "key must have from 1 to 64 bytes, got 0; leave it out for"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExponentialExplanations(**options)


def test_the_key_is_not_written_anywhere() -> None:
    defense = ExponentialExplanations(1.0, key="swordfish")
    assert "swordfish" not in f"{defense} {defense!r}"
