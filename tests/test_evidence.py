from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence, Folds
from leakscope.protocols import Bools, Floats, Knowledge
from leakscope.records import Records

N = 60
rng = np.random.default_rng(0)
MEMBERSHIP = rng.random(N) < 0.5


def evidence(
    knowledge: Knowledge = "members of the other half",
    membership: Bools | None = MEMBERSHIP,
    shadows: int = 3,
) -> Evidence:
    rng = np.random.default_rng(1)
    # The first number of an observation is the record itself: a spy can tell whom it is shown.
    observations = np.column_stack([np.arange(N), rng.normal(size=N)])
    return Evidence(
        task="classification",
        observations=observations,
        labels=rng.integers(2, size=N),
        classes=2,
        folds=Folds.draw(np.arange(N), MEMBERSHIP, 0),
        seed=0,
        knowledge=knowledge,
        shadow_membership=rng.random((shadows, N)) < 0.5,
        shadow_observations=np.tile(observations, (shadows, 1, 1)),
        _membership=membership,
    )


class Spy:
    """A learner that writes down what it is taught and what it is asked."""

    def __init__(self) -> None:
        self.lessons: list[tuple[Evidence, Bools, Evidence]] = []

    def __call__(self, known: Evidence, membership: Bools) -> Callable[[Evidence], Floats]:
        def score(asked: Evidence) -> Floats:
            self.lessons.append((known, membership, asked))
            # Depends on everything taught, so that a record taught to itself would show.
            return asked.observations[:, 1] * known.observations[membership, 1].sum()

        return score


def whom(part: Evidence) -> set[int]:
    return set(part.observations[:, 0].astype(int).tolist())


def test_a_record_is_never_scored_by_an_attack_that_saw_it() -> None:
    spy = Spy()
    evidence().cross_fit(spy)
    assert len(spy.lessons) == 2
    for known, membership, asked in spy.lessons:
        assert whom(known) | whom(asked) == set(range(N))
        assert not whom(known) & whom(asked)
        np.testing.assert_array_equal(membership, MEMBERSHIP[sorted(whom(known))])
    assert set().union(*(whom(asked) for *_, asked in spy.lessons)) == set(range(N))


def test_the_taught_half_is_all_that_a_learner_can_reach() -> None:
    spy = Spy()
    evidence().cross_fit(spy)
    for known, _, asked in spy.lessons:
        for part in (known, asked):
            assert part.knowledge == "none"
            assert part._membership is None
            # Copies: no way back to the whole through .base.
            for array in (part.observations, part.labels, part.folds.half, part.shadow_membership):
                assert array.base is None or array.base.size <= array.size
            assert part.shadow_membership.shape == (3, len(part))
            np.testing.assert_array_equal(part.shadow_observations[0], part.observations)
            with pytest.raises(PermissionError):
                part.average_training_loss()
            with pytest.raises(PermissionError):
                part.cross_fit(spy)


def test_changing_the_membership_of_a_record_does_not_change_its_own_score() -> None:
    whole = evidence()
    before = whole.cross_fit(Spy())
    for record in range(0, N, 7):
        changed = MEMBERSHIP.copy()
        changed[record] = ~changed[record]
        after = evidence(membership=changed).cross_fit(Spy())
        same_half = whole.folds.half == whole.folds.half[record]
        np.testing.assert_array_equal(after[same_half], before[same_half])
        assert (after[~same_half] != before[~same_half]).all()


def test_scores_come_from_the_lesson_of_the_other_half() -> None:
    given = evidence()
    scores = given.cross_fit(Spy())
    values, half = given.observations[:, 1], given.folds.half
    for record in range(N):
        taught = half != half[record]
        assert scores[record] == pytest.approx(values[record] * values[taught & MEMBERSHIP].sum())


def test_one_half_without_records_cannot_teach() -> None:
    whole = np.zeros(N, dtype=bool)
    for half in (whole, ~whole):
        given = replace(evidence(), folds=Folds(half, whole))
        with pytest.raises(NotApplicableError, match=f"All {N} records fell into one half"):
            given.cross_fit(Spy())


def test_the_average_training_loss_is_that_of_the_members() -> None:
    given = evidence("average training loss")
    expected = given.observations[MEMBERSHIP, 0].mean()
    assert given.average_training_loss() == pytest.approx(expected)


@pytest.mark.parametrize("declared", ["none", "average training loss", "members of the other half"])
@pytest.mark.parametrize("used", ["average training loss", "members of the other half"])
def test_knowledge_must_be_declared(declared: Knowledge, used: str) -> None:
    def use(given: Evidence) -> None:
        if used == "average training loss":
            given.average_training_loss()
        else:
            given.cross_fit(Spy())

    if declared == used:
        use(evidence(declared))
        # Declared and yet not given: as for attacks on data with unknown members.
        with pytest.raises(PermissionError, match=f"knowledge='{used}'"):
            use(evidence(declared, membership=None))
    else:
        with pytest.raises(PermissionError, match=f"An attack must declare knowledge='{used}'"):
            use(evidence(declared))


def test_the_repr_does_not_give_membership_away() -> None:
    assert " _membership=" not in repr(evidence())
    assert " shadow_membership=" in repr(evidence())
    assert len(evidence()) == N


@pytest.mark.parametrize("shape", [(0, 0), (0, N)])
def test_parts_of_evidence_without_shadows(shape: tuple[int, int]) -> None:
    given = replace(
        evidence(),
        shadow_membership=np.zeros(shape, dtype=bool),
        shadow_observations=np.zeros((*shape, 2)),
    )
    part = given.part(np.arange(N) < 10)
    assert len(part) == 10
    assert len(part.shadow_membership) == len(part.shadow_observations) == 0


def test_halves_and_fifths_are_even_on_each_side_and_keep_blocks_whole() -> None:
    blocks = np.repeat(np.arange(1000), 3)
    membership = blocks < 300
    folds = Folds.draw(blocks, membership, 7)
    for side in (membership, ~membership):
        assert folds.half[side].mean() == 0.5
        assert folds.calibration[side].mean() == 0.2
        assert (folds.half & folds.calibration)[side].mean() == 0.1
    for values in (folds.half, folds.calibration):
        rows = values.reshape(1000, 3)
        assert (rows == rows[:, :1]).all()


@pytest.mark.parametrize("persons", [2, 3, 5, 7])
def test_few_persons_are_dealt_to_both_halves(persons: int) -> None:
    blocks = np.repeat(np.arange(2 * persons), 50)
    membership = blocks < persons
    for seed in range(50):
        folds = Folds.draw(blocks, membership, seed)
        for side in (membership, ~membership):
            for fold in (folds.half, ~folds.half, folds.calibration, ~folds.calibration):
                assert (fold & side).any()


def test_swapping_the_sides_changes_no_fold() -> None:
    blocks = np.arange(60) // 2
    membership = blocks % 3 == 0
    folds, swapped = (Folds.draw(blocks, sides, 1) for sides in (membership, ~membership))
    np.testing.assert_array_equal(folds.half, swapped.half)
    np.testing.assert_array_equal(folds.calibration, swapped.calibration)


def test_folds_depend_on_the_records_and_the_seed_and_not_on_their_order() -> None:
    X = np.random.default_rng(5).normal(size=(N, 2))
    records = Records(X, np.arange(N) % 2)
    order = np.random.default_rng(6).permutation(N)
    folds = Folds.draw(records.blocks(), MEMBERSHIP, 3)
    shuffled = Folds.draw(records.take(order).blocks(), MEMBERSHIP[order], 3)
    np.testing.assert_array_equal(shuffled.half, folds.half[order])
    np.testing.assert_array_equal(shuffled.calibration, folds.calibration[order])
    assert (Folds.draw(records.blocks(), MEMBERSHIP, 4).half != folds.half).any()
