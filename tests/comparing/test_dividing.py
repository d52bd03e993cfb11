from __future__ import annotations

import numpy as np
import pytest

from leakscope.comparing.dividing import MEMBER, REFERENCE, Seat, divide
from leakscope.errors import InputError
from leakscope.records import Records


def sides(division):
    return division.roles == MEMBER, division.roles == REFERENCE, division.evaluated


@pytest.mark.parametrize("members", [None, 80, 30])
def test_three_disjoint_sets_of_equal_size(pool, members):
    for division in divide(pool, members, seed=0, seeds=4):
        found = np.stack(sides(division))
        assert (found.sum(axis=1) == (members or 80)).all()
        assert (found.sum(axis=0) <= 1).all()


def test_more_seeds_begin_with_the_same_divisions_and_other_seeds_differ(pool):
    few, many = (divide(pool, None, seed=3, seeds=number) for number in (2, 4))
    for one, other in zip(few, many[:2], strict=True):
        np.testing.assert_array_equal(one.roles, other.roles)
    assert not np.array_equal(many[0].roles, many[1].roles)
    assert not np.array_equal(few[0].roles, divide(pool, None, seed=4, seeds=1)[0].roles)


def test_every_record_has_the_same_chance_of_each_role():
    records = Records(np.arange(60.0)[:, None], np.arange(60) % 2)
    roles = np.stack([one.roles for one in divide(records, None, seed=0, seeds=600)])
    # Of 600 draws with chance 1/3; a false alarm of any of 120 counts is rarer than 1e-6.
    for role in (MEMBER, REFERENCE):
        share = (roles == role).mean(axis=0)
        assert np.abs(share - 1 / 3).max() < 6 * np.sqrt(2 / 9 / 600)


def test_persons_and_equal_records_are_kept_together():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, size=(300, 1)).astype(float)
    records = Records(X, (X[:, 0] % 2).astype(int), unit=np.arange(300) // 2)
    persons = Records(rng.normal(size=(300, 2)), rng.integers(0, 2, 300), unit=np.arange(300) // 2)
    for division in divide(persons, None, seed=0, seeds=3):
        for person in range(150):
            own = persons.unit == person
            assert len({tuple(side[own]) for side in np.stack(sides(division))}) <= 2
            assert sum(side[own].all() for side in sides(division)) == 1
    # Everybody shares a value with somebody: one block, and nothing to divide.
    with pytest.raises(InputError, match="0 persons, and a comparison needs 20"):
        divide(records, None, seed=0, seeds=1)


def test_more_members_than_there_are_is_refused(pool):
    with pytest.raises(InputError, match="need 243, and there are 240; ask for 80 members"):
        divide(pool, 81, seed=0, seeds=1)
    with pytest.raises(InputError, match="members must be a whole number"):
        divide(pool, 0, seed=0, seeds=1)


def test_too_few_records_and_a_single_class_are_refused():
    few = Records(np.arange(50.0)[:, None], np.arange(50) % 2)
    with pytest.raises(InputError, match=r"members are 16 different records.*give 60 or more"):
        divide(few, None, seed=0, seeds=1)
    with pytest.raises(InputError, match="members are 1 different records"):
        divide(few, 1, seed=0, seeds=1)
    same = Records(np.arange(90.0)[:, None], np.zeros(90, dtype=int))
    with pytest.raises(InputError, match="all have the label"):
        divide(same, None, seed=0, seeds=1)
    with pytest.raises(InputError, match="members are 1 different records"):
        divide(Records(np.zeros((2, 1)), np.array([0, 1])), None, seed=0, seeds=1)


def test_a_seat_has_members_and_evaluated_records_and_no_reference(pool):
    pool = pool.take(pool.canonical_order())
    (division,) = divide(pool, 40, seed=0, seeds=1)
    seat = Seat.of(pool, division, 0, seed=0)
    members, reference, evaluated = sides(division)
    np.testing.assert_array_equal(seat.records.X, pool.X[members | evaluated])
    np.testing.assert_array_equal(seat.membership, members[members | evaluated])
    np.testing.assert_array_equal(seat.members.X, pool.X[members])
    np.testing.assert_array_equal(seat.reference.X, pool.X[reference])
    np.testing.assert_array_equal(pool.blocks()[division.asked], seat.place)
    assert seat.clusters is None


def test_equal_records_of_a_seat_count_together():
    X = np.repeat(np.random.default_rng(0).normal(size=(90, 2)), 2, axis=0)
    records = Records(X, np.repeat(np.arange(90) % 2, 2))
    (division,) = divide(records, None, seed=0, seeds=1)
    seat = Seat.of(records, division, 0, seed=0)
    assert seat.clusters is not None
    assert seat.clusters.max() + 1 == len(seat.records) // 2
