"""What the rows of a table of Wang et al. (2020) say: what holds, what does not, what is odd.

Lower and higher are said where an interval of a paired difference excludes 0, and of two defenses
where the intervals of their differences from none do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from leakscope.papers.experiment import Row
from leakscope.papers.wang_comparing import NONE, Compared

# The baselines that stand beside defenses, by how their names begin.
BASELINES = ("equal-compute", "early-stop")


def notes_on(found: Sequence[Compared], printed: Sequence[Row]) -> Iterator[str]:
    """What was found in each set-up, beside what is printed for it."""
    for one in found:
        plain = one.rows[0]
        yield _undefended(plain, printed)
        defenses = [row for row in one.rows[1:] if not _is_baseline(row)]
        baselines = [row for row in one.rows[1:] if _is_baseline(row)]
        for row in defenses:
            yield (
                f"{row['setup']}, {row['defense']}: attack accuracy {_found(row)}, "
                f"{_change(row, 'attack_change')}; test accuracy {_share(row['test_accuracy'])}, "
                f"{_change(row, 'test_change')}{_beside(row, baselines)}."
            )
        for row in baselines:
            yield (
                f"{row['setup']}, the baseline {row['defense']}: attack accuracy {_found(row)}, "
                f"{_change(row, 'attack_change')}; test accuracy {_share(row['test_accuracy'])}."
            )
        for reason in one.without:
            yield f"{one.setup}: a baseline is not there. {_sentence(reason)}"
        yield from _by_network_alone(one.rows)


def _undefended(row: Row, printed: Sequence[Row]) -> str:
    told = (
        f"{row['setup']}, no defense: the strongest attack ({row['attack']}) is right about "
        f"{_found(row)} of members and others at a test accuracy of {_share(row['test_accuracy'])}"
    )
    for one in printed:
        if (one["setup"], one["defense"]) == (row["setup"], NONE):
            meets = row["low"] <= one["attack_accuracy"] <= row["high"]
            told += (
                f"; the paper prints {_share(one['attack_accuracy'])} at "
                f"{_share(one['test_accuracy'])}, which "
                f"{'is within the interval' if meets else 'does not reproduce'}"
            )
    return f"{told}."


def surely(row: Row, other: Row) -> str | None:
    """Whether attacks on one are surely "less" or "more" accurate than on another."""
    if row["attack_change_high"] < other["attack_change_low"]:
        return "less"
    if row["attack_change_low"] > other["attack_change_high"]:
        return "more"
    return None


def reduced(rows: Sequence[Row], kind: str) -> str:
    """In which set-ups defenses of a kind surely leak less than none."""
    own = [row for row in rows if kind_of(row) == kind]
    holds = [row["setup"] for row in own if row["attack_change_high"] < 0]
    where = f": {', '.join(holds)}" if holds else ""
    return f"{len(holds)} of {len(own)} set-ups{where}"


def between(rows: Sequence[Row], kind: str, other: str) -> Iterator[str]:
    """For each set-up whether defenses of one kind surely leak less than those of another."""
    for setup, group in groupby(rows, key=lambda row: str(row["setup"])):
        by_kind = {kind_of(row): row for row in group}
        one, two = by_kind[kind], by_kind[other]
        said = surely(one, two)
        told = "cannot be told apart from" if said is None else f"leaks surely {said} than"
        yield (
            f"{setup}: {one['defense']} {told} {two['defense']} "
            f"({_share(one['attack_accuracy'])} and {_share(two['attack_accuracy'])})."
        )


def kind_of(row: Row) -> str:
    """The defense without its settings: "prune+minmax" of "prune:16+minmax:0.3"."""
    parts = str(row["defense"]).split("+")
    return "+".join(part.partition(":")[0].partition(" ")[0] for part in parts)


def _is_baseline(row: Row) -> bool:
    return str(row["defense"]).startswith(BASELINES)


def _beside(row: Row, baselines: Sequence[Row]) -> str:
    """Which baselines leak surely more or less than a defense."""
    said = {"less": list[str](), "more": list[str]()}
    for other in baselines:
        if (how := surely(row, other)) is not None:
            said[how].append(str(other["defense"]))
    told = [f"surely {how} than {' and '.join(names)}" for how, names in said.items() if names]
    if not told:
        return "; against the baselines nothing is sure" if baselines else ""
    return f"; it leaks {', '.join(told)}"


def _by_network_alone(rows: Sequence[Row]) -> Iterator[str]:
    """Where the paper's kind of attack finds surely less than a plain threshold does."""
    missed = [
        f"{row['defense']} ({_share(row['network_accuracy'])} and "
        f"{_share(row['threshold_accuracy'])} by {row['threshold_attack']})"
        for row in rows
        if row["network_accuracy"] is not None and row["network_accuracy"] < row["threshold_low"]
    ]
    if missed:
        yield (
            f"{rows[0]['setup']}: the inference network, by which the paper judges, finds less "
            f"than a plain threshold on {', '.join(missed)}."
        )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _found(row: Row) -> str:
    return f"{_share(row['attack_accuracy'])} ({_share(row['low'])} to {_share(row['high'])})"


def _change(row: Row, key: str) -> str:
    value, low, high = (row[one] for one in (key, f"{key}_low", f"{key}_high"))
    if high < 0:
        return f"lower than none by {_share(-value)} ({_share(-high)} to {_share(-low)})"
    if low > 0:
        return f"higher than none by {_share(value)} ({_share(low)} to {_share(high)})"
    return f"not surely different from none ({_share(low)} to {_share(high)})"


def _share(value: Any) -> str:
    return f"{value:.3f}".replace("-", "−")
