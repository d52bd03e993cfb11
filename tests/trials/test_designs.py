from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from leakscope.errors import InputError
from leakscope.records import Records
from leakscope.trials.designs import (
    bootstrap,
    expand,
    fixed_size,
    independent_halves,
    leave_one_out,
    model_seeds,
    paired,
    random_halves,
)

RARE = 1e-6


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 2**40))
def test_halves_are_exact_for_models_and_for_records(n: int, pairs: int, seed: int) -> None:
    roles = random_halves(n, 2 * pairs, seed)
    assert (roles.shape, roles.dtype) == ((2 * pairs, n), np.int8)
    np.testing.assert_array_equal(roles[0::2] + roles[1::2], 1)
    np.testing.assert_array_equal(roles[0::2].sum(axis=1), n // 2)
    np.testing.assert_array_equal(roles[1::2].sum(axis=1), n - n // 2)
    np.testing.assert_array_equal(roles.sum(axis=0), pairs)


@given(st.integers(2, 30), st.integers(1, 9), st.integers(0, 2**40))
def test_independent_halves_are_one_of_each_complementary_pair(
    n: int, models: int, seed: int
) -> None:
    roles = independent_halves(n, models, seed)
    assert (roles.shape, roles.dtype) == ((models, n), np.int8)
    np.testing.assert_array_equal(roles.sum(axis=1), n // 2)
    np.testing.assert_array_equal(roles, random_halves(n, 2 * models, seed)[::2])
    np.testing.assert_array_equal(roles, independent_halves(n, models + 2, seed)[:models])


def test_independent_halves_do_not_depend_on_each_other() -> None:
    # Of 4 records there are 6 halves: all 36 pairs of rows have equal chances.
    pairs = Counter(
        (tuple(roles[0]), tuple(roles[1]))
        for roles in (independent_halves(4, 2, seed) for seed in range(3600))
    )
    assert len(pairs) == 36
    assert chisquare(list(pairs.values())).pvalue > RARE


@given(st.data(), st.integers(1, 24), st.integers(1, 20), st.integers(0, 2**40))
def test_a_fixed_size_is_exact_and_records_are_used_equally_often(
    data: st.DataObject, n: int, models: int, seed: int
) -> None:
    size = data.draw(st.integers(1, n))
    roles = fixed_size(n, size, models, seed)
    assert (roles.shape, roles.dtype) == ((models, n), np.int8)
    assert set(np.unique(roles)) <= {0, 1}
    np.testing.assert_array_equal(roles.sum(axis=1), size)
    # After any number of models, not only after the last.
    used = np.cumsum(roles, axis=0, dtype=int)
    so_far = np.arange(1, models + 1) * size
    assert (used.min(axis=1) == so_far // n).all()
    assert (used.max(axis=1) == -(-so_far // n)).all()


@pytest.mark.parametrize(("n", "size"), [(6, 3), (6, 4), (5, 2), (7, 6)])
def test_every_row_of_a_fixed_size_is_any_subset_with_equal_chances(n: int, size: int) -> None:
    draws = 3000
    designs = np.stack([fixed_size(n, size, 5, seed) for seed in range(draws)])
    for row in range(5):
        seen = Counter(tuple(np.flatnonzero(roles[row])) for roles in designs)
        counts = [seen[subset] for subset in combinations(range(n), size)]
        assert sum(counts) == draws
        assert chisquare(counts).pvalue > RARE


def test_pairs_of_records_meet_as_often_as_chance_has_it() -> None:
    n, size, models, draws = 9, 4, 11, 2000
    designs = np.stack([fixed_size(n, size, models, seed) for seed in range(draws)]).astype(int)
    together = np.einsum("dmi,dmj->dij", designs, designs)
    expected = models * size * (size - 1) / (n * (n - 1))
    for first, second in combinations(range(n), 2):
        met = together[:, first, second]
        error = met.std(ddof=1) / np.sqrt(draws)
        assert abs(met.mean() - expected) < 5.5 * error  # 36 pairs, one in a million


def test_halves_are_random() -> None:
    draws = 3000
    seen = Counter(tuple(np.flatnonzero(random_halves(6, 2, seed)[0])) for seed in range(draws))
    assert len(seen) == comb(6, 3)
    assert chisquare(list(seen.values())).pvalue > RARE


@given(st.data(), st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**40))
def test_a_pair_differs_in_the_record_and_one_other(
    data: st.DataObject, n: int, pairs: int, seed: int
) -> None:
    size = data.draw(st.integers(1, n - 1))
    record = data.draw(st.integers(0, n - 1))
    roles = paired(n, size, record, pairs, seed)
    assert (roles.shape, roles.dtype) == ((2 * pairs, n), np.int8)
    np.testing.assert_array_equal(roles.sum(axis=1), size)
    with_it, without = roles[0::2], roles[1::2]
    assert (with_it[:, record] == 1).all()
    assert (without[:, record] == 0).all()
    others = np.delete(without - with_it, record, axis=1)
    np.testing.assert_array_equal(others.sum(axis=1), 1)
    np.testing.assert_array_equal(np.abs(others).sum(axis=1), 1)


def test_the_others_of_a_pair_are_random() -> None:
    roles = paired(6, 3, 2, 3000, 5)
    for rows, size in ((roles[0::2], 2), (roles[1::2], 3)):
        others = np.delete(rows, 2, axis=1)
        seen = Counter(tuple(np.flatnonzero(row)) for row in others)
        assert len(seen) == comb(5, size)
        assert chisquare(list(seen.values())).pvalue > RARE


def test_one_is_left_out_at_a_time() -> None:
    np.testing.assert_array_equal(leave_one_out(4), 1 - np.eye(4, dtype=np.int8))
    np.testing.assert_array_equal(leave_one_out(4, [3, 0]), [[1, 1, 1, 0], [0, 1, 1, 1]])
    assert leave_one_out(3).dtype == np.int8


def test_a_bootstrap_has_whom_it_drew_at_least_once() -> None:
    n, models = 50, 2000
    roles = bootstrap(n, models, 3)
    assert set(np.unique(roles)) == {0, 1}
    chance = 1 - (1 - 1 / n) ** n
    # Members of a model are fewer apart than independent ones would be: this bound is generous.
    assert abs(roles.mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / (n * models))
    assert len(np.unique(roles, axis=0)) == models
    two = Counter(map(tuple, bootstrap(2, 4000, 1).tolist()))
    assert chisquare([two[1, 1], two[1, 0], two[0, 1]], [2000, 1000, 1000]).pvalue > RARE


def test_a_design_over_blocks_keeps_persons_and_equal_rows_together() -> None:
    X = np.array([[0.0], [1.0], [0.0], [2.0], [3.0]])
    records = Records(X, np.zeros(5), unit=np.array(["a", "b", "c", "b", "d"]))
    blocks = records.blocks()
    roles = expand(random_halves(3, 6, 0), blocks)
    assert (roles.shape, roles.dtype) == ((6, 5), np.int8)
    np.testing.assert_array_equal(roles[:, 0], roles[:, 2])
    np.testing.assert_array_equal(roles[:, 1], roles[:, 3])
    np.testing.assert_array_equal(roles.sum(axis=0), 3)


@pytest.mark.parametrize("blocks", [[], [0, 1], [0, 1, 2, 3], [0, 2, 2], [1, 2, 3], [-1, 0, 1]])
def test_blocks_must_be_those_of_the_design(blocks: list[int]) -> None:
    with pytest.raises(InputError, match="over 3 blocks cannot be expanded"):
        expand(leave_one_out(3), np.array(blocks, dtype=int))


def test_a_longer_run_begins_with_the_models_of_a_shorter_one() -> None:
    np.testing.assert_array_equal(random_halves(9, 12, 4)[:6], random_halves(9, 6, 4))
    np.testing.assert_array_equal(fixed_size(9, 5, 12, 4)[:7], fixed_size(9, 5, 7, 4))
    np.testing.assert_array_equal(paired(9, 5, 1, 6, 4)[:6], paired(9, 5, 1, 3, 4))
    np.testing.assert_array_equal(bootstrap(9, 12, 4)[:7], bootstrap(9, 7, 4))
    assert model_seeds(4, 12)[:7] == model_seeds(4, 7)


def test_other_seeds_give_other_designs() -> None:
    for one, other in (
        (random_halves(40, 2, 0), random_halves(40, 2, 1)),
        (fixed_size(40, 9, 2, 0), fixed_size(40, 9, 2, 1)),
        (paired(40, 9, 0, 2, 0), paired(40, 9, 0, 2, 1)),
        (bootstrap(40, 2, 0), bootstrap(40, 2, 1)),
    ):
        assert (one != other).any()


def test_a_design_does_not_repeat_the_draw_of_the_seed_itself() -> None:
    # Splits and folds are drawn from default_rng(seed): shadows must not follow the target.
    order = np.random.default_rng(7).permutation(100)
    own = np.zeros(100, dtype=np.int8)
    own[order[:50]] = 1
    for roles in (random_halves(100, 2, 7), fixed_size(100, 50, 2, 7)):
        assert 25 <= (roles[0] == own).sum() <= 75


def test_seeds_of_models_are_distinct_whole_numbers() -> None:
    seeds = model_seeds(0, 500)
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    assert len({*seeds, *model_seeds(1, 500)}) == 1000
    # Uniform: the mean of 500 has a standard error of 2^32 / sqrt(12 · 500).
    assert abs(np.mean(seeds) / 2**32 - 0.5) < 5 / np.sqrt(12 * 500)


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (lambda: random_halves(1, 2, 0), "1 records is empty; ask for 2 or more"),
        (lambda: random_halves(4, 3, 0), "3 models are no pairs; ask for an even number"),
        (lambda: random_halves(4, 0, 0), "0 models are no pairs"),
        (lambda: random_halves(4, 2, -1), "A seed of -1 is negative"),
        (lambda: fixed_size(0, 1, 1, 0), "0 records is empty"),
        (lambda: fixed_size(3, 4, 1, 0), "cannot have 4 of 3 records; ask for 1 to 3"),
        (lambda: fixed_size(3, 0, 1, 0), "cannot have 0 of 3 records"),
        (lambda: fixed_size(3, 1, 0, 0), "0 models is empty"),
        (lambda: paired(3, 3, 1, 1, 0), "3 members without record 1 of 3 records; ask for 1 to 2"),
        (lambda: paired(3, 0, 1, 1, 0), "cannot have 0 members"),
        (lambda: paired(3, 1, 3, 1, 0), "no record 3 among 3 records"),
        (lambda: paired(3, 1, 0, 0, 0), "0 pairs is empty"),
        (lambda: leave_one_out(1), "1 records is empty"),
        (lambda: leave_one_out(3, [0, -1]), "no record -1 among 3 records"),
        (lambda: leave_one_out(3, []), "one or more whole numbers"),
        (lambda: leave_one_out(3, np.array([0.5])), "one or more whole numbers"),
        (lambda: leave_one_out(3, np.array([[0]])), "one or more whole numbers"),
        (lambda: bootstrap(1, 1, 0), "1 records is empty"),
        (lambda: bootstrap(2, 0, 0), "0 models is empty"),
        (lambda: model_seeds(0, 0), "0 models is empty"),
    ],
)
def test_what_is_impossible_is_one_sentence(design: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        design()  # type: ignore[operator]
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
