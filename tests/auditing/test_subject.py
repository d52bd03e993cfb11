from __future__ import annotations

import numpy as np
import pytest

from leakscope.auditing.settings import Settings
from leakscope.auditing.subject import make_subject
from leakscope.models import as_model
from leakscope.records import Records


def half(X):
    return np.full(len(X), 0.5)


def made(members, nonmembers, **settings):
    return make_subject(
        as_model(half), members, nonmembers, Settings(**settings), dataset=None, unit=None
    )


def test_rows_lead_back_to_the_input_whatever_the_order(sides):
    members, nonmembers = sides
    subject, controls = made(members, nonmembers)
    assert subject.whole
    assert [control.name for control in controls] == ["overlap", "number of records"]
    for side, given in ((subject.membership, members), (~subject.membership, nonmembers)):
        np.testing.assert_array_equal(subject.records.X[side], given.X[subject.row[side]])
    np.testing.assert_array_equal(subject.nonmembers.X, subject.records.X[~subject.membership])
    assert len(subject.nonmembers) == 300


def test_records_on_both_sides_are_taken_out_and_said_so(sides):
    members, nonmembers = sides
    X, y = nonmembers.X.copy(), nonmembers.y.copy()
    X[:3], y[:3] = members.X[:3], members.y[:3]
    subject, controls = made(members, Records(X, y, nonmembers.groups))
    assert not subject.whole
    assert len(subject.records) == 700 - 2 * 3
    assert controls[0].passed


def test_equal_records_count_together_and_only_those(sides):
    members, nonmembers = sides
    assert made(members, nonmembers)[0].clusters is None
    twice = members.take(np.r_[np.arange(400), 0])
    subject, _ = made(twice, nonmembers)
    assert subject.clusters is subject.blocks
    assert subject.blocks.max() + 1 == 700


def test_another_model_is_asked_once_too(sides):
    asked = []

    def counting(X):
        asked.append(len(X))
        return half(X)

    subject, _ = made(*sides)
    other = subject.seen_through(as_model(counting))
    for _ in range(2):
        other.model.predict_proba(other.records.X)
    assert asked == [700]
    assert other.records is subject.records
    assert subject.model.predict_proba(sides[0].X)[0, 1] == pytest.approx(0.5)
