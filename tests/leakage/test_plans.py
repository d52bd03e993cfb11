from __future__ import annotations

import numpy as np
import pytest

from leakscope.leakage import output_leakage
from leakscope.leakage.plans import GROUPS, Design, Plan
from leakscope.trials import fixed_size


def rows_as_bytes(membership):
    return sorted(row.tobytes() for row in membership)


def nulls_of(plan):
    return np.stack([plan.null(number, slice(None)) for number in range(len(plan.nulls))])


def test_a_shuffle_keeps_the_design(halves):
    rng = np.random.default_rng(0)
    membership = halves(rng, 20, 9)
    membership = np.concatenate([membership, rng.random((3, 9)) < 0.5])  # and three without a twin
    plan = Plan.draw(membership, 40, seed=1)
    moved = nulls_of(plan)
    assert moved.shape == (40, 23, 9)
    for one in moved:
        assert rows_as_bytes(one) == rows_as_bytes(membership)
        np.testing.assert_array_equal(one[:20:2], ~one[1:20:2])
        assert rows_as_bytes(one[20:]) == rows_as_bytes(membership[20:])
    # Everything else moves: each of twenty places gets each model sooner or later.
    assert len({one[0].tobytes() for one in moved}) > 8
    np.testing.assert_array_equal(nulls_of(Plan.draw(membership, 40, seed=1)), moved)
    np.testing.assert_array_equal(plan.null(7, slice(2, 5)), moved[7, :, 2:5])


def test_twins_are_left_out_together(halves):
    membership = halves(np.random.default_rng(2), 100, 12)
    folds = Plan.draw(membership, 1, seed=0).folds
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    counts = np.bincount(folds)
    assert len(counts) == GROUPS
    assert set(counts) <= {4, 6}


def test_one_split_leaves_the_models_as_they_are():
    one = np.arange(6) < 3
    membership = np.array([one, ~one] * 10)
    plan = Plan.draw(membership, 30, seed=0)
    assert sorted(plan.folds) == list(range(20))
    assert len({one.tobytes() for one in nulls_of(plan)}) > 8


def deck(n, size, models, seed):
    """Members dealt like cards: who was in one model is not in the next, until all were in."""
    return fixed_size(n, size, models, seed) == 1


def design_of(n, size, models, kept):
    together = np.floor((np.arange(models) + 0.5) * size / n).astype(int)
    return Design(together, lambda seed: deck(n, size, models, seed)[:, :kept])


def test_a_design_says_what_stays_together_and_draws_the_nulls():
    design = design_of(40, 18, 12, 30)
    membership = deck(40, 18, 12, 0)[:, :30]
    plan = Plan.draw(membership, 5, seed=1, design=design)
    assert len(set(plan.folds)) == len(set(design.together)) < 12
    for fold in set(plan.folds):
        assert len(set(design.together[plan.folds == fold])) == 1
    nulls = nulls_of(plan)
    assert nulls.shape == (5, 12, 30)
    assert len({one.tobytes() for one in nulls} | {membership.tobytes()}) == 6
    np.testing.assert_array_equal(nulls_of(Plan.draw(membership, 5, 1, design)), nulls)


def test_every_null_of_a_design_is_drawn_by_a_seed_of_its_own():
    seeds = []

    def draw(seed):
        seeds.append(seed)
        return deck(40, 18, 12, seed)

    Plan.draw(deck(40, 18, 12, 0), 200, seed=1, design=Design(np.arange(12), draw))
    assert len(set(seeds)) == 200


@pytest.mark.slow
def test_models_that_share_few_records_do_not_pass_for_leakage():
    # The records asked about are in no training set. What is seen of them follows from who else
    # is in, and models of one deck have nobody in common: to one that ignores this, they tell.
    # 40 worlds, 9 draws: p = .1 has chance .1, and 18 of 40 one of 3e-8.
    found = {"as dealt": 0, "as if independent": 0}
    for world in range(40):
        rng = np.random.default_rng(world)
        membership = deck(100, 45, 24, world)
        others = membership[:, 30:] @ rng.normal(size=70)
        seen = (others - others.mean())[:, None] * rng.normal(size=30)
        seen += 0.2 * seen.std() * rng.normal(size=(24, 30))
        for name, design in (("as dealt", design_of(100, 45, 24, 30)), ("as if independent", None)):
            result = output_leakage(
                seen, membership[:, :30], permutations=9, seed=world, design=design
            )
            found[name] += result.advantage.null.p_value <= 0.1
    assert found["as dealt"] < 18
    assert found["as if independent"] > found["as dealt"]
