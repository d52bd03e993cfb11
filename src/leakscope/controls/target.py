"""Controls of the target and the sizes: accuracy, too few records, scores that do not vary."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.controls import Control
from leakscope.metrics.intervals import Interval

FEWEST = 20  # per side: below, intervals (clustered ones above all) no longer hold what they say
ACCURACY = "accuracy of the target"
FEW = 100  # per side: below, hardly any interval is narrow enough to decide


def size_control(members: int, nonmembers: int, persons: bool = False) -> Control:
    """Whether there are enough records to say anything; where rows belong to persons, of these."""
    fewest = min(members, nonmembers)
    sizes = f"{members} members and {nonmembers} non-members"
    if persons:
        sizes += ", counted by person,"
    if fewest < FEWEST:
        detail = f"{sizes} are too few: give at least {FEWEST} of each."
        return Control("number of records", passed=False, fatal=True, detail=detail)
    if fewest < FEW:
        detail = f"{sizes} are few: expect wide intervals below {FEW} of each."
        return Control("number of records", passed=False, fatal=False, detail=detail)
    return Control("number of records", passed=True, fatal=True, detail=f"{sizes.rstrip(',')}.")


def accuracy_control(
    member: Interval, nonmember: Interval, gap: Interval, classes: int | None = None
) -> Control:
    """The target's accuracy on both sides; better on non-members hints at swapped sides.

    classes: how many there are. A model that is surely right about fewer of its own members than
    guessing among them hints at classes in another order than the model's, or at another column
    of labels: every attack that uses the label then sees noise, and would find no leak.
    """
    told = (
        f"The model is right for {member.value:.1%} of members and {nonmember.value:.1%} of "
        f"non-members (gap {gap.value:+.3f}, 95% interval {gap.low:+.3f} to {gap.high:+.3f})"
    )
    if classes and member.high < 1 / classes:
        return Control(
            ACCURACY,
            passed=False,
            fatal=False,
            detail=f"{told}: fewer members than by guessing among {classes} classes; check that "
            "the labels are those it was trained on, and the classes in the order it has.",
        )
    if gap.high < 0:
        return Control(
            ACCURACY,
            passed=False,
            fatal=False,
            detail=f"{told}: it does better on non-members; check that the sides are not swapped.",
        )
    return Control(ACCURACY, passed=True, fatal=False, detail=f"{told}.")


def error_control(member: float, nonmember: float) -> Control:
    """The target's root mean squared error on both sides, for a regression."""
    return Control(
        "error of the target",
        passed=True,
        fatal=False,
        detail=f"The root mean squared error is {member:.4g} on members and {nonmember:.4g} on "
        "non-members.",
    )


def variation_control(constant: Sequence[str], attacks: int) -> Control:
    """Whether any of these attacks gives every record the same score."""
    if not constant:
        detail = "Every attack's scores vary over the records."
        return Control("constant scores", passed=True, fatal=False, detail=detail)
    if len(constant) < attacks:
        detail = (
            f"The scores of {', '.join(constant)} are the same for every record, so these attacks "
            "count as not run; the scores of the others vary."
        )
        return Control("constant scores", passed=True, fatal=False, detail=detail)
    detail = (
        "The scores of every attack are the same for every record, which is no evidence: check "
        "that the model answers for these records as it does in use."
    )
    return Control("constant scores", passed=False, fatal=False, detail=detail)
