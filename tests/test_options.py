from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.options import magnitude, one_of, share, whole_number


def test_one_of_suggests_the_nearest_choice_or_lists_them() -> None:
    assert one_of("part", "train", ["train", "test"]) == "train"
    with pytest.raises(
        InputError, match=r"The option part cannot be 'tran'; did you mean 'train'\?"
    ):
        one_of("part", "tran", ["train", "test"])
    with pytest.raises(InputError, match="cannot be 'q'; choose from: train, test"):
        one_of("part", "q", ["train", "test"])


@pytest.mark.parametrize("value", [1, 5, np.int32(3)])
def test_a_whole_number_within_bounds_passes(value: int) -> None:
    assert whole_number("n", value, 1, 5) == value


@pytest.mark.parametrize("value", [0, 6, 2.0, "3", None, True])
def test_a_whole_number_out_of_bounds_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="must be a whole number from 1 to 5, got"):
        whole_number("n", value, 1, 5)


def test_a_whole_number_may_have_no_upper_bound() -> None:
    assert whole_number("n", 10**12, 1) == 10**12
    with pytest.raises(InputError, match="option n must be a whole number of at least 1, got 0"):
        whole_number("n", 0, 1)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(2), np.int64(3), 1e300])
def test_a_magnitude_is_a_finite_number_of_at_least_0(value: Any) -> None:
    assert magnitude("l2", value) == float(value)


@pytest.mark.parametrize("value", [-1e-9, math.inf, math.nan, "1", None, True, [1.0]])
def test_what_is_no_magnitude_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="option l2 must be a finite number of at least 0, got"):
        magnitude("l2", value)


def test_a_magnitude_may_have_another_limit() -> None:
    assert magnitude("power", 1, least=1) == 1
    with pytest.raises(InputError, match=r"power must be a finite number of at least 1, got 0\.5"):
        magnitude("power", 0.5, least=1)
    assert magnitude("grid", 5e-324, above=0) == 5e-324
    for value in (0, -1.0):
        with pytest.raises(InputError, match="grid must be a finite number above 0, got"):
            magnitude("grid", value, above=0)


def test_a_share_is_between_0_and_1() -> None:
    assert share("prior", 0.25) == 0.25
    for value in (0, 1, 1.5, -0.1, math.nan, "0.5", None, True):
        with pytest.raises(InputError, match="The option prior must be between 0 and 1, got"):
            share("prior", value)


def test_a_choice_that_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="The option part cannot be 3; choose from: train, test"):
        one_of("part", 3, ["train", "test"])
