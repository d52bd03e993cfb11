from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from leakscope.datasets.options import check_options
from leakscope.errors import InputError

KNOWN = {"encoding": "onehot", "n": 5, "share": 0.5, "frame": False, "file": None}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"encoding": "pca", "n": 7, "share": 0.25, "frame": True, "file": "a.npz"},
        {"n": np.int64(7), "share": np.float32(0.25)},
        {"share": 1},
        {"file": 3},
    ],
)
def test_values_of_the_kind_of_the_default_pass(given: dict[str, Any]) -> None:
    check_options("some", given, KNOWN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"encodng": "pca"},
            "The data set 'some' has no option 'encodng'; did you mean 'encoding'?",
        ),
        ({"q": 1}, "has no option 'q'; it has: encoding, n, share, frame, file"),
        ({"n": "5"}, "The option n of the data set 'some' is '5', where a whole number is needed"),
        ({"n": 5.0}, "is 5.0, where a whole number is needed, such as 5"),
        ({"n": True}, "is True, where a whole number is needed, such as 5"),
        ({"share": "much"}, "is 'much', where a number is needed, such as 0.5"),
        ({"frame": 1}, "is 1, where True or False is needed, such as False"),
        ({"encoding": 1}, "is 1, where a text is needed, such as 'onehot'"),
    ],
)
def test_an_unknown_option_or_a_value_of_another_kind_is_one_sentence(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_options("some", given, KNOWN)


def test_a_data_set_without_options_says_so() -> None:
    with pytest.raises(InputError, match="has no option 'n'; it has none"):
        check_options("some", {"n": 1}, {})
