from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from leakscope.attacks.taught import ByShadows, TaughtAttack, rank_correlation, shadow_examples
from leakscope.errors import InputError, NotApplicableError
from leakscope.evidence import Evidence, Folds


@dataclass(frozen=True)
class MeanDifference(TaughtAttack):
    """How much nearer a number is to the average of one side; it remembers what it was told."""

    name: ClassVar[str] = "mean-difference"
    paper: ClassVar[str] = "none"
    channel: ClassVar[str] = "loss"
    direction: float = 1.0

    def teach(self, known, told):
        inside, outside = (known.observations[side, 0].mean() for side in (told, ~told))
        before = np.log(told.sum()) - np.log((~told).sum())
        return lambda asked: (
            (asked.observations[:, 0] - outside) ** 2
            - (asked.observations[:, 0] - inside) ** 2
            + before
        )

    def expected(self, evidence):
        return self.direction * evidence.observations[:, 0]


def evidence(numbers, membership, **more):
    n = len(numbers)
    return Evidence(
        task="classification",
        observations=np.asarray(numbers, float)[:, None],
        labels=np.arange(n) % 2,
        classes=2,
        folds=Folds.draw(np.arange(n), np.asarray(membership), 0),
        seed=0,
        knowledge="members of the other half",
        _membership=np.asarray(membership),
        **more,
    )


@pytest.fixture(params=[0, 1])
def sides(request):
    """Members have 1 more, and there are twice as many of them."""
    rng = np.random.default_rng(request.param)
    membership = rng.permutation(np.arange(300) < 200)
    return rng.normal(membership.astype(float)), membership


def test_what_is_learned_on_one_half_scores_the_other(sides):
    numbers, membership = sides
    given = evidence(numbers, membership)
    expected = np.empty(300)
    for half in (False, True):
        asked = given.folds.half == half
        inside, outside = (numbers[~asked & side].mean() for side in (membership, ~membership))
        expected[asked] = (numbers[asked] - outside) ** 2 - (numbers[asked] - inside) ** 2
    np.testing.assert_allclose(MeanDifference().score(given), expected, atol=1e-12)
    assert MeanDifference().threshold(given) == 0.0


def test_swapped_sides_give_the_same_scores_where_there_is_a_direction(sides):
    numbers, membership = sides
    plain = MeanDifference().score(evidence(numbers, membership))
    swapped = MeanDifference().score(evidence(numbers, ~membership))
    np.testing.assert_array_equal(plain, swapped)
    assert rank_correlation(plain, numbers) > 0.9


def test_members_who_have_less_than_expected_show_below_chance(sides):
    numbers, membership = sides
    right = MeanDifference().score(evidence(numbers, membership))
    wrong = MeanDifference(direction=-1.0).score(evidence(numbers, membership))
    np.testing.assert_array_equal(wrong, -right)


def test_without_a_direction_the_sign_is_that_learned(sides):
    numbers, membership = sides
    given = MeanDifference(direction=0.0)
    plain = given.score(evidence(numbers, membership))
    np.testing.assert_array_equal(plain, MeanDifference().score(evidence(numbers, membership)))
    np.testing.assert_array_equal(given.score(evidence(numbers, ~membership)), -plain)


def test_one_side_alone_teaches_nothing():
    with pytest.raises(NotApplicableError, match="mean-difference attack has members or non"):
        MeanDifference().score(evidence(np.arange(8), np.ones(8, bool)))


def shadowed(seed=0, m=6, n=50):
    """Shadow models that show 1 more of their members, and where each number comes from."""
    rng = np.random.default_rng(seed)
    inside = rng.random((m, n)) < 0.4
    seen = np.stack([10.0 * np.arange(m)[:, None] + inside, np.tile(np.arange(n), (m, 1))], axis=2)
    membership = rng.random(n) < 0.5
    given = evidence(np.where(membership, 1.0, 0.0), membership)
    return given, {"shadow_membership": inside, "shadow_observations": seen}


def test_shadow_models_give_examples_of_their_own_members():
    given, shadows = shadowed()
    given = Evidence(**{**vars(given), **shadows})
    examples, inside = shadow_examples(given, 40)
    assert len(examples) == len(inside) == 40
    assert inside.sum() == 20
    models = (examples.observations[:, 0] // 10).astype(int)
    records = examples.observations[:, 1].astype(int)
    assert len(set(zip(models, records, strict=True))) == 40
    np.testing.assert_array_equal(shadows["shadow_membership"][models, records], inside)
    np.testing.assert_array_equal(examples.labels, given.labels[records])
    everything, _ = shadow_examples(given, 10_000)
    assert len(everything) == 300


def test_an_attack_taught_by_shadow_models_needs_no_known_member():
    rng = np.random.default_rng(0)
    membership = rng.random(200) < 0.5
    inside = rng.random((4, 200)) < 0.5
    given = Evidence(
        **{
            **vars(evidence(rng.normal(3.0 * membership), membership)),
            "knowledge": "how it was trained, and records like its members",
            "_membership": None,
            "shadow_membership": inside,
            "shadow_observations": rng.normal(3.0 * inside)[:, :, None],
        }
    )
    attack = ByShadows(MeanDifference())
    called = attack.score(given) >= attack.threshold(given)
    assert (called == membership).mean() > 0.85  # Φ(1.5) = .933, less 5 standard deviations
    np.testing.assert_array_equal(attack.score(given), attack.score(given))


def test_it_is_called_by_what_it_wraps():
    attack = ByShadows(MeanDifference())
    assert (attack.name, attack.channel) == ("mean-difference-shadow", "loss")
    assert attack.paper == "none; Shokri et al. 2017, section V"
    assert attack.tasks == MeanDifference.tasks
    assert attack.shadows == 2
    assert attack.threshold(evidence([1.0, 2.0], [True, False])) == 0.0  # even odds
    with pytest.raises(InputError, match="rows must be a whole number of at least 2"):
        ByShadows(MeanDifference(), rows=1).score(evidence([1.0, 2.0], [True, False]))


def test_rank_correlation_of_something_and_nothing():
    rising = np.arange(9.0)
    assert rank_correlation(rising, np.exp(rising)) == pytest.approx(1)
    assert rank_correlation(rising, -rising) == pytest.approx(-1)
    assert rank_correlation(rising, np.ones(9)) == 0.0
