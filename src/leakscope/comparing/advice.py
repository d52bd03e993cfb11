"""A few sentences of advice, no stronger than the intervals allow.

Figures are those of the table, to the same digits. "Significantly" means that the paired interval
of the difference excludes 0. What the seeds cannot rank is not ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakscope.comparing.contest import MOST_SEEDS, Contest
from leakscope.comparing.defending import NONE
from leakscope.metrics.intervals import Interval
from leakscope.report.comparison_words import points, points_span
from leakscope.report.words import count, percent

Summaries = Mapping[str, Mapping[str, Any]]

UNDEFENDED = "none, the undefended baseline"
FIGURES = ("attack_accuracy", "test_accuracy")


@dataclass(frozen=True)
class Advisor:
    """What to do, by the summaries of all defenses and their differences.

    limit: the advantage that counts as none; two defenses are as private as each other where the
    accuracy of attacks on them differs by less than half of it. baselines: what each row is that
    is a baseline and no defense.
    """

    contest: Contest
    summaries: Summaries
    limit: float
    baselines: Mapping[str, str]

    def advice(self) -> str:
        """Sentences that hold for the table."""
        complete = [name for name in self.contest.names if self._complete(name)]
        if NONE not in complete:
            return f"No advice: {UNDEFENDED}, has no figures to compare with."
        others = sorted(set(complete) - {NONE})
        safer = [name for name in others if self.contest.more_private(name, NONE)]
        if safer:
            sentences = self._take(safer)
        elif self._within_limit():
            sentences = [self._nothing_needed()]
        else:
            sentences = self._nothing_better(others)
        worse = [name for name in others if self.contest.more_private(NONE, name)]
        if worse:
            sentences.append(f"Significantly less private than none: {_listed(worse)}.")
        missing = sorted(set(self.contest.names) - set(complete))
        if missing:
            sentences.append(f"No figures for {_listed(missing)}.")
        if self.contest.observed_seeds == 1 and others:
            sentences.append("The intervals of one seed cover other records, but not other seeds.")
        return " ".join(sentences)

    def _take(self, safer: Sequence[str]) -> list[str]:
        """The most private of those without a significant loss; else that of the least loss."""
        contest = self.contest
        free = [name for name in safer if not contest.more_accurate(NONE, name)]
        if free:
            first, second = contest.more_private, contest.more_accurate
            name, equals = _pick(free, self._attack, self._test, first, second)
        else:
            first, second = contest.more_accurate, contest.more_private
            name, equals = _pick(safer, self._test, self._attack, first, second)
        sentences = [self._safer(name), self._price(name)]
        if name in self.baselines:
            sentences.append(f"It is a baseline: {self.baselines[name]}.")
        if self._within_limit():
            sentences.append(f"But {UNDEFENDED}, is already within the limit of {self.limit:g}.")
        rival = self._rival(name)
        if rival is not None:
            sentences.append(
                f"It is as private as {self._called(rival)} to within {50 * self.limit:g} points, "
                f"and significantly more accurate ({_ci(contest.accuracy(name, rival))})."
            )
        unranked = [other for other in equals if not contest.apart(name, other)]
        if unranked:
            needed = contest.seeds_needed(
                lambda more: all(more.apart(name, other) for other in unranked)
            )
            against = _listed([self._called(other) for other in unranked])
            sentences.append(cannot(f"rank it against {against}", contest.observed_seeds, needed))
        return sentences

    def _safer(self, name: str) -> str:
        own, plain = (percent(self._attack(row)) for row in (name, NONE))
        moved = f"{own} of records instead of {plain}" if own != plain else f"{own} of records"
        difference = _ci(self.contest.leaking(name, NONE))
        called = self._called(name)
        return (
            f"{'The' + called.removeprefix('the') if name in self.baselines else called} is "
            f"significantly more private than none: the strongest attack is right about {moved} "
            f"({difference})."
        )

    def _price(self, name: str) -> str:
        change = self.contest.accuracy(name, NONE)
        if self.contest.more_accurate(name, NONE):
            return f"Test accuracy is significantly higher ({_ci(change)})."
        if self.contest.more_accurate(NONE, name):
            return f"Test accuracy is significantly lower ({_ci(change)})."
        return f"There is no significant loss of test accuracy ({_ci(change)})."

    def _nothing_needed(self) -> str:
        plain = self.summaries[NONE]["attack_accuracy"]
        return (
            f"No defense is needed at the limit of {self.limit:g}: on {UNDEFENDED}, the strongest "
            f"attack is right about {percent(plain['value'])} of records (95% CI "
            f"up to {percent(plain['high'])}), where guessing is right about 50%."
        )

    def _nothing_better(self, others: Sequence[str]) -> list[str]:
        plain = percent(self._attack(NONE))
        if not others:
            return [
                f"There is nothing to compare with {UNDEFENDED}: the strongest attack on it is "
                f"right about {plain} of records."
            ]
        sentences = ["No defense is significantly more private than none."]
        lowest = min(others, key=lambda name: (self._attack(name), name))
        change = self.contest.leaking(lowest, NONE)
        reduction = points({"value": -change.value})
        if reduction == "0.0" or change.value > 0:
            sentences.append(
                f"No observed reduction of its attack accuracy, {plain}, reaches 0.1 points."
            )
            return sentences
        sentences.append(
            f"The largest observed reduction is {reduction} points, by {self._called(lowest)}: no "
            f"significant difference ({_ci(change)})."
        )
        needed = self.contest.seeds_needed(lambda more: more.more_private(lowest, NONE))
        sentences.append(cannot("tell them apart", self.contest.observed_seeds, needed))
        return sentences

    def _rival(self, name: str) -> str | None:
        """The defense that is significantly less accurate and as private but for half the limit.

        Of several the one that is least accurate.
        """
        rivals = {}
        for other in self.contest.names:
            if other in (name, NONE) or not self.contest.more_accurate(name, other):
                continue
            leaking = self.contest.leaking(name, other)
            if -self.limit / 2 < leaking.low and leaking.high < self.limit / 2:
                rivals[other] = self.contest.accuracy(name, other).value
        return max(sorted(rivals), key=lambda other: rivals[other], default=None)

    def _called(self, name: str) -> str:
        """The row, with that it is a baseline, and with when it stopped unless its name says so."""
        epochs = self.summaries[name]["epochs"]
        stopped = name.startswith("early-stop") and "accuracy" in name and epochs is not None
        after = f" (about epoch {epochs:.0f})" if stopped else ""
        return f"{'the baseline ' if name in self.baselines else ''}{name}{after}"

    def _complete(self, name: str) -> bool:
        return all(self.summaries[name][key]["value"] is not None for key in FIGURES)

    def _within_limit(self) -> bool:
        return bool(2 * self.summaries[NONE]["attack_accuracy"]["high"] - 1 <= self.limit)

    def _attack(self, name: str) -> float:
        return float(self.summaries[name]["attack_accuracy"]["value"])

    def _test(self, name: str) -> float:
        """Negative, so that the least is the best, as of attacks."""
        return -float(self.summaries[name]["test_accuracy"]["value"])


def resolution(contest: Contest) -> dict[str, Any]:
    """Whether the seeds tell what is on the frontier; if not, how many would, for JSON."""
    undecided = contest.undecided()
    needed = contest.seeds_needed(lambda more: not more.undecided()) if undecided else None
    half = contest.seeds_needed(lambda more: 2 * len(more.undecided()) <= len(undecided))
    return {
        "resolved": not undecided,
        "undecided": undecided,
        "seeds_needed": needed,
        "seeds_for_half": half if undecided else None,
        "text": _unresolved(contest, undecided, needed, half) if undecided else "",
    }


def _unresolved(
    contest: Contest, undecided: Sequence[str], needed: int | None, half: int | None
) -> str:
    sentence = cannot("resolve the frontier", contest.observed_seeds, needed)
    if needed is None and half is not None:
        decided = len(undecided) - len(replace(contest, seeds=half).undecided())
        sentence = (
            f"{count(contest.observed_seeds)} seeds cannot resolve the frontier; about "
            f"{count(half)} would decide {decided} of the {len(undecided)} undecided."
        )
    return f"{sentence} Undecided: {_listed(undecided)}."


def _pick(
    names: Collection[str],
    value: Callable[[str], float],
    other_value: Callable[[str], float],
    better: Callable[[str, str], bool],
    otherwise_better: Callable[[str, str], bool],
) -> tuple[str, list[str]]:
    """The best by one figure, and those that are not significantly worse in it.

    If some of those are significantly better in the other figure, the best of them instead.
    """
    best = min(names, key=lambda name: (value(name), name))
    equals = [name for name in names if name == best or not better(best, name)]
    preferred = [name for name in equals if otherwise_better(name, best)]
    if preferred:
        best = min(preferred, key=lambda name: (other_value(name), name))
    return best, sorted(name for name in equals if name != best)


def cannot(what: str, seeds: int, needed: int | None) -> str:
    """A sentence: these seeds cannot do it, and how many would."""
    if seeds == 1:
        return f"1 seed cannot {what}; use at least 3."
    if needed is None:
        return f"{count(seeds)} seeds cannot {what}, and {MOST_SEEDS} would not."
    return f"{count(seeds)} seeds cannot {what}; about {count(needed)} would."


def _ci(difference: Interval) -> str:
    return f"95% CI of the difference {points_span(difference.to_dict())} points"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
