"""An exact test of the highest scores, where a leak of a few members shows.

Averages such as the advantage hide a leak that affects few records. The test compares the two
sides above a threshold that is fixed by rank: the score that a given number of non-members exceed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from leakscope.metrics.intervals import finite, fisher_p_value, holm
from leakscope.metrics.samples import Codes, check_mask, check_scores, unit_codes
from leakscope.metrics.tails import Rate, allowed_false_positives, cut_at
from leakscope.protocols import Bools, Floats

# The false positive rates that the test is run at. The share of members found at the first is held
# to a limit, too.
TAIL_FPRS = (0.01, 0.001)
TAIL_FPR = TAIL_FPRS[0]
# The level of one-sided tests, after Holm's correction: that of the lower end of a 95 % interval.
LEVEL = 0.025


@dataclass(frozen=True)
class TailTest:
    """Members and non-members above the threshold of a false positive rate.

    Counts are persons where rows belong to persons. ``found`` of the ``members`` lie above the
    threshold, which at most ``accused`` of the ``nonmembers`` exceed. ``p_value`` is one-sided;
    ``adjusted_p`` is filled in by the code that knows the whole family of tests.
    """

    fpr: float
    found: int
    members: int
    accused: int
    nonmembers: int
    p_value: float
    adjusted_p: float = math.nan

    def to_dict(self) -> dict[str, float | int | None]:
        """For JSON."""
        return {
            "fpr": self.fpr,
            "found": self.found,
            "members": self.members,
            "accused": self.accused,
            "nonmembers": self.nonmembers,
            "p_value": finite(self.p_value),
            "adjusted_p": finite(self.adjusted_p),
        }


def tail_tests(
    scores: ArrayLike,
    membership: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    halves: ArrayLike | None = None,
) -> tuple[TailTest, ...]:
    """Test the highest scores (n,) at each rate of ``TAIL_FPRS``.

    If members and non-members are exchangeable, the number of members above the (k + 1)-th highest
    non-member has a negative hypergeometric distribution, whatever the scores: the p-value is exact
    without ties and conservative with them. A person counts once, with the score of a random row
    (``unit``). ``halves`` (n,) marks one half of records whose scores were learned from the
    other half: each half is then tested by itself, which stays exact, and twice the smaller
    p-value counts. No test where no half holds both sides.
    """
    parts = [
        _by_person(values, members, codes)[:2]
        for values, members, codes, _ in _parts(scores, membership, unit, halves)
    ]
    return tuple(_combined([_test(*part, fpr) for part in parts]) for fpr in TAIL_FPRS if parts)


def above_tail(
    scores: ArrayLike,
    membership: ArrayLike,
    fpr: float,
    *,
    unit: ArrayLike | None = None,
    halves: ArrayLike | None = None,
) -> Bools:
    """The rows (n,) of the members that the test at this rate finds."""
    above = np.zeros(len(np.asarray(scores)), dtype=bool)
    for values, members, codes, rows in _parts(scores, membership, unit, halves):
        persons, side, person = _by_person(values, members, codes)
        found = side & (persons > cut_at(np.sort(persons[~side]), fpr))
        above[rows] = found[person]
    return above


def _parts(
    scores: ArrayLike, membership: ArrayLike, unit: ArrayLike | None, halves: ArrayLike | None
) -> Iterator[tuple[Floats, Bools, Codes | None, Bools]]:
    """Scores, membership, persons and rows of each part that is tested by itself."""
    values, members = check_scores(scores, membership)
    codes = unit_codes(unit, members)
    everyone = np.ones(len(values), dtype=bool)
    half = None if halves is None else check_mask(halves, len(values), "mask of a half")
    for rows in [everyone] if half is None else [half, ~half]:
        if members[rows].any() and not members[rows].all():
            yield values[rows], members[rows], None if codes is None else codes[rows], rows


def _by_person(
    scores: Floats, membership: Bools, codes: Codes | None
) -> tuple[Floats, Bools, Codes]:
    """A score and the membership of each person, and the person of each row.

    The score is that of one row, drawn at random. The highest of all rows would favour persons with
    many rows, who may be more common on one side.
    """
    if codes is None:
        return scores, membership, np.arange(len(scores))
    _, first, person = np.unique(codes, return_index=True, return_inverse=True)
    rows = np.bincount(person)
    drawn = np.random.default_rng(0).random(len(rows)) * rows
    # Of the rows of a person, sorted by score so that the order of the input changes nothing.
    chosen = np.lexsort((scores, person))[np.cumsum(rows) - rows + drawn.astype(np.intp)]
    return scores[chosen], membership[first], person


def _test(scores: Floats, membership: Bools, fpr: float) -> TailTest:
    others = np.sort(scores[~membership])
    members = int(membership.sum())
    found = int((scores[membership] > cut_at(others, fpr)).sum())
    accused = allowed_false_positives(len(others), fpr)
    p_value = fisher_p_value(found, members, accused, len(others))
    return TailTest(fpr, found, members, accused, len(others), p_value)


def _combined(parts: list[TailTest]) -> TailTest:
    """The sums of the counts, and the smallest p-value with Bonferroni's correction."""
    first, *others = parts
    for part in others:
        first = replace(
            first,
            found=first.found + part.found,
            members=first.members + part.members,
            accused=first.accused + part.accused,
            nonmembers=first.nonmembers + part.nonmembers,
        )
    return replace(first, p_value=min(1.0, len(parts) * min(part.p_value for part in parts)))


def beyond_limit(
    rates: Iterable[Rate], tests: Iterable[TailTest], limit: float
) -> list[tuple[float, float]]:
    """Where the share of members found may exceed the limit, a multiple of the FPR.

    Pairs of an FPR and the largest share. The rate at 1 % FPR counts always, others where their
    test is significant. Such a test counts persons, so its own share counts as well.
    """
    highs = {rate.fpr: rate.high for rate in rates}
    shares = {TAIL_FPR: highs.get(TAIL_FPR, 1.0)}
    for test in tests:
        if test.adjusted_p <= LEVEL:
            found = test.found / test.members
            shares[test.fpr] = max(found, highs.get(test.fpr, 1.0), shares.get(test.fpr, 0.0))
    return [(fpr, share) for fpr, share in shares.items() if share > min(limit * fpr, 1.0)]


def adjust_together(tests: Mapping[int, tuple[TailTest, ...]]) -> dict[int, tuple[TailTest, ...]]:
    """The same tests with Holm's correction over all of them."""
    adjusted = iter(holm([test.p_value for several in tests.values() for test in several]))
    return {
        key: tuple(replace(test, adjusted_p=next(adjusted)) for test in several)
        for key, several in tests.items()
    }
