"""Lemma F.2 of Shokri, Strobel & Zick (2021): the counts that docs/papers.md gives."""

from __future__ import annotations

import pytest


def not_revealed(ks: range) -> list[int]:
    """The records of w = 2k, b = k² that the query y = k does not reveal by |influence|.

    The model is constant, so that the loss changes by a rising function of |w y − b|: whole numbers
    decide.
    """
    return [k for k in ks if max(ks, key=lambda i: abs(2 * i * k - i * i)) != k]


def test_the_construction_as_printed_fails_for_absolute_values() -> None:
    assert not_revealed(range(1, 13)) == [1, 2, 3, 4]


@pytest.mark.parametrize("m", [1, 2, 5, 12, 100])
def test_from_m_to_twice_m_it_works(m: int) -> None:
    assert not_revealed(range(m, 2 * m)) == []
