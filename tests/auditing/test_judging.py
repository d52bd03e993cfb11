from __future__ import annotations

import numpy as np

from leakscope.auditing.judging import vulnerable


def test_members_above_all_but_one_percent_of_nonmembers_are_vulnerable():
    scores = np.r_[np.arange(1000.0), [985.0, 990.0, 995.0]]
    membership = np.arange(1003) >= 1000
    assert np.flatnonzero(vulnerable(scores, membership)).tolist() == [1001, 1002]


def test_with_few_nonmembers_five_percent_are_accused():
    scores = np.r_[np.arange(100.0), [93.0, 94.5]]
    membership = np.arange(102) >= 100
    assert np.flatnonzero(vulnerable(scores, membership)).tolist() == [101]
