from __future__ import annotations

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.metrics.samples import check_mask, check_scores, split_units, unit_codes

SIDES = [True, True, False]


@pytest.mark.parametrize(
    ("scores", "membership", "message"),
    [
        ([0.1, np.nan, np.nan], SIDES, r"2 are not, the first in row 1 \(nan\)"),
        ([0.1, 2, np.inf], SIDES, r"1 are not, the first in row 2 \(inf\)"),
        ([[0.1], [0.2], [0.3]], SIDES, r"shape \(3, 1\)"),
        (["a", "b", "c"], SIDES, "one number per record"),
        ([1j, 0, 0], SIDES, "complex"),
        ([0.1, 0.2], SIDES, "there are 2 scores"),
        ([0.1, 0.2, 0.3], [1, 1, 0], "must be true or false for each record, got int64"),
        ([0.1, 0.2, 0.3], [True] * 3, "no non-members among the 3 records"),
        ([0.1, 0.2, 0.3], [False] * 3, "no members among the 3 records"),
        ([], np.array([], dtype=bool), "no members among the 0 records"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(scores, membership, message):
    with pytest.raises(InputError, match=message) as error:
        check_scores(scores, membership)
    assert "\n" not in str(error.value)


def test_whole_numbers_and_booleans_are_scores():
    for scores in ([1, 2, 3], [True, False, True]):
        values, membership = check_scores(scores, SIDES)
        assert values.dtype == np.float64
        assert membership.dtype == np.bool_


def test_the_mask_is_named():
    with pytest.raises(InputError, match="The calibration mask must be true or false"):
        check_mask([0, 1], 2, "calibration mask")


@pytest.mark.parametrize(
    "unit", [["b", "a", "b"], [7, 3, 7], np.array(["b", 1, "b"], dtype=object)]
)
def test_units_of_any_kind_become_codes(unit):
    codes = unit_codes(unit, np.array([True, False, True]))
    assert codes is not None
    assert codes.tolist() == [1, 0, 1]


def test_no_units_no_codes():
    assert unit_codes(None, np.array(SIDES)) is None


def test_a_person_on_both_sides_is_named():
    with pytest.raises(InputError, match="'ann' is among the members and the non-members"):
        unit_codes(["zoe", "ann", "ann"], np.array(SIDES))


def test_units_must_match_the_scores():
    with pytest.raises(InputError, match=r"unit has shape \(2,\), but there are 3 scores"):
        unit_codes([1, 2], np.array(SIDES))


def test_split_units_are_found():
    codes = np.array([0, 0, 1, 1, 2])
    mask = np.array([True, False, True, True, False])
    assert split_units(codes, mask).tolist() == [True, False, False]
