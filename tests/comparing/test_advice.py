"""The advice says what the table says: checked on single cases, and on generated comparisons."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import norm, t

from leakscope.comparing.advice import Advisor, resolution
from leakscope.comparing.baselines import Baseline, described
from leakscope.report.comparison_page import render
from leakscope.report.comparison_terminal import print_comparison
from leakscope.report.comparison_words import points
from leakscope.report.words import percent

EARLY = "early-stop (accuracy 0.9)"
KINDS = {
    EARLY: "early stopping at the same train accuracy as prune:16",
    "equal-compute:9": "equal compute as prune:16",
}


def steady(right, found):
    return [(right + move, found + move) for move in (-0.001, 0.0, 0.001)]


def summaries_of(contest, epochs=10.0):
    kinds = KINDS | {"none": "no defense"}
    return {
        name: contest.summary(name) | {"epochs": epochs, "baseline": kinds.get(name)}
        for name in contest.names
    }


@pytest.fixture
def told(contest):
    def tell(figures, limit=0.1, epochs=10.0):
        found = contest(figures)
        return Advisor(found, summaries_of(found, epochs), limit, KINDS).advice()

    return tell


def test_the_most_private_without_a_significant_loss_is_taken(told):
    advice = told(
        {
            "none": steady(0.70, 0.80),
            "early-stop:12": steady(0.70, 0.65),
            "l2:1": steady(0.70, 0.70),
            "dpsgd:1": steady(0.50, 0.51),
        }
    )
    assert advice == (
        "early-stop:12 is significantly more private than none: the strongest attack is right "
        "about 65.0% of records instead of 80.0% (95% CI of the difference −15.0 to −15.0 "
        "points). There is no significant loss of test accuracy (95% CI of the difference −0.05 "
        "to 0.05 points)."
    )


def test_a_baseline_is_named_as_one_and_a_less_accurate_rival_beside_it(told):
    figures = {
        "none": steady(0.70, 0.80),
        EARLY: steady(0.72, 0.65),
        "prune:16": steady(0.70, 0.66),
    }
    advice = told(figures, epochs=12.2)
    assert advice.startswith(
        f"The baseline {EARLY} (about epoch 12) is significantly more private than none"
    )
    assert "Test accuracy is significantly higher (95% CI of the difference 2.0 to 2.0 " in advice
    assert f"It is a baseline: {KINDS[EARLY]}." in advice
    assert "It is as private as prune:16 to within 5 points, and significantly more acc" in advice


def test_a_rival_that_may_be_more_private_is_not_called_as_private(told):
    advice = told({"none": steady(0.7, 0.8), "a": steady(0.72, 0.65), "b": steady(0.7, 0.55)})
    assert "as private" not in advice


def test_where_all_cost_accuracy_the_cheapest_is_taken_with_its_price(told):
    advice = told({"none": steady(0.7, 0.8), "a": steady(0.65, 0.6), "b": steady(0.5, 0.5)})
    assert advice.startswith("a is significantly more private than none")
    assert "Test accuracy is significantly lower (95% CI of the difference −5.0" in advice


def test_as_private_and_more_accurate_is_taken_before_the_lowest_mean(told):
    private = [(0.70, 0.600), (0.70, 0.640), (0.70, 0.620)]
    accurate = [(0.75, 0.639), (0.75, 0.601), (0.75, 0.621)]
    advice = told({"none": steady(0.7, 0.9), "lowest": private, "accurate": accurate})
    assert advice.startswith("accurate is significantly more private than none")


def test_no_defense_is_needed_where_nothing_is_found(told):
    advice = told({"none": steady(0.7, 0.52), "a": steady(0.7, 0.52)})
    assert advice == (
        "No defense is needed at the limit of 0.1: on none, the undefended baseline, the "
        "strongest attack is right about 52.0% of records (95% CI up to 52.2%), where guessing is "
        "right about 50%."
    )


def test_equal_figures_are_not_a_reduction_and_worse_is_called_worse(told):
    advice = told({"none": steady(0.7, 0.8), "a": steady(0.7, 0.8), "b": steady(0.7, 0.9)})
    assert advice == (
        "No defense is significantly more private than none. No observed reduction of its attack "
        "accuracy, 80.0%, reaches 0.1 points. Significantly less private than none: b."
    )


def test_the_number_of_seeds_that_would_decide_is_that_of_students_interval(told):
    noisy = [(0.7, 0.78), (0.7, 0.72), (0.7, 0.75)]
    plain = [(0.7, 0.80), (0.7, 0.79), (0.7, 0.78)]
    advice = told({"none": plain, "a": noisy})
    changes = np.array([one[1] for one in noisy]) - [one[1] for one in plain]
    wanted = next(
        n
        for n in range(4, 101)
        if (t.ppf(0.975, n - 1) + norm.ppf(0.8)) * changes.std(ddof=1) / np.sqrt(n)
        < -changes.mean()
    )
    assert "The largest observed reduction is 4.0 points, by a: no significant diff" in advice
    assert advice.endswith(f"3 seeds cannot tell them apart; about {wanted} would.")


def test_more_seeds_do_not_help_where_the_same_records_decide(contest):
    found = contest({"none": [(0.7, 0.8), (0.7, 0.81)], "a": [(0.7, 0.8), (0.7, 0.8)]}, n=100)
    assert found.seeds_needed(lambda more: more.more_private("a", "none")) is None
    advice = Advisor(found, summaries_of(found), 0.1, {}).advice()
    assert "2 seeds cannot tell them apart, and 100 would not." in advice


def test_what_the_seeds_cannot_rank_is_not_ranked(told):
    one = [(0.7, 0.60), (0.7, 0.64), (0.7, 0.62)]
    other = [(0.7, 0.62), (0.7, 0.625), (0.7, 0.63)]
    advice = told({"none": steady(0.7, 0.9), "a": one, EARLY: other})
    assert advice.startswith("a is significantly more private than none")
    against = re.escape(f"rank it against the baseline {EARLY} (about epoch 10)")
    assert re.search(rf"3 seeds cannot {against}[;,] (about \d+ would|and 100 would not)\.", advice)


def test_one_seed_ranks_by_records_and_says_so(told):
    advice = told({"none": [(0.7, 0.8)], "a": [(0.7, 0.6)], "b": [(0.7, 0.6)]})
    assert "1 seed cannot rank it against b; use at least 3." in advice
    assert advice.endswith("The intervals of one seed cover other records, but not other seeds.")


def test_none_alone_and_missing_figures(told):
    nothing = [(np.nan, np.nan)] * 3
    assert told({"none": steady(0.7, 0.8)}).startswith("There is nothing to compare with none, the")
    assert told({"none": nothing, "a": steady(0.7, 0.6)}) == (
        "No advice: none, the undefended baseline, has no figures to compare with."
    )
    advice = told({"none": steady(0.7, 0.8), "a": steady(0.7, 0.6), "b": nothing})
    assert advice.startswith("a is significantly more private than none")
    assert advice.endswith("No figures for b.")


def test_baselines_are_described_by_what_they_stand_beside():
    said = [
        Baseline("equal compute", ("prune:16", "l2:1"), "equal-compute:9", ""),
        Baseline("equal compute", ("dpsgd:1",), None, "No epochs."),
    ]
    names = ["none", "equal-compute:9", "equal-compute:4", "equal-compute:4+round:1", "l2:1"]
    assert described(said, names) == {
        "equal-compute:9": "equal compute as prune:16 and l2:1",
        "equal-compute:4": "equal compute",
    }


# Generated comparisons: every statement is checked against the numbers.

NAMES = ("none", "l2:1", "prune:16", EARLY, "equal-compute:9", "dpsgd:1", "round:1")


def generate(rng):
    """Figures of few seeds: ties, equal rows, rows worse than none, clear winners, no figures."""
    rows, seeds = int(rng.integers(2, len(NAMES) + 1)), int(rng.integers(1, 6))
    figures = {}
    for name in NAMES[:rows]:
        kind = rng.choice(["near", "tied", "worse", "winner", "copy", "missing"],
                          p=[0.4, 0.15, 0.15, 0.15, 0.13, 0.02])  # fmt: skip
        test, attack = {"worse": (0.66, 0.75), "winner": (0.72, 0.52)}.get(kind, (0.7, 0.6))
        if kind == "near":
            test, attack = test + rng.normal(scale=0.02), attack + rng.normal(scale=0.02)
        spread = rng.choice([0.0001, 0.002, 0.02]) * (kind != "tied")
        drawn = [(test, attack) + spread * rng.normal(size=2) for _ in range(seeds)]
        if kind == "copy" and figures:
            drawn = figures[str(rng.choice([*figures]))]
        if kind == "missing":
            drawn = [(np.nan, np.nan)] * seeds
        figures[name] = [(float(right), float(found)) for right, found in drawn]
    return figures


def names_in(text):
    """The rows in a list of them."""
    plain = re.sub(r"the baseline | \(about epoch \d+\)", "", text)
    return re.split(r", | and ", plain)


def significant(span):
    """Whether an interval as it is written excludes 0."""
    low, high = (float(end.replace("−", "-")) for end in span.split(" to "))
    return low > 0 or high < 0


def check_taken(advice, contest, summaries):
    """What is said of the defense that is taken."""
    called = re.match(r"(.*?)(?: \(about epoch \d+\))? is significantly more private", advice)[1]
    name = called.removeprefix("The baseline ")
    assert (called != name) == (name in KINDS) == ("It is a baseline: " in advice)
    assert contest.leaking(name, "none").high < 0
    own, plain = (percent(summaries[one]["attack_accuracy"]["value"]) for one in (name, "none"))
    said = re.search(r"right about (\S+) of records(?: instead of (\S+))? \(95% CI", advice)
    assert said[1] == own
    assert said[2] == (None if own == plain else plain)
    spans = re.findall(r"95% CI of the difference (\S+ to \S+) points", advice)
    assert significant(spans[0])
    change = contest.accuracy(name, "none")
    told = {
        "Test accuracy is significantly higher": change.low > 0,
        "Test accuracy is significantly lower": change.high < 0,
        "no significant loss of test accuracy": change.low <= 0 <= change.high,
    }
    assert [text in advice for text in told] == [*told.values()]
    assert significant(spans[1]) == (not change.low <= 0 <= change.high)
    safer = {one for one in contest.names if contest.leaking(one, "none").high < 0}
    unranked = re.search(r"cannot rank it against (.*?)(?:; | ?, and 100)", advice)
    listed = set(names_in(unranked[1])) if unranked else set()
    assert listed <= safer - {name}
    for other in listed:
        assert contest.leaking(name, other).low <= 0 <= contest.leaking(name, other).high
        assert contest.accuracy(name, other).low <= 0 <= contest.accuracy(name, other).high
    for other in safer - listed - {name}:  # whatever is not named is worse in something
        worse = contest.leaking(name, other).high < 0 or contest.accuracy(name, other).low > 0
        priced = contest.accuracy(other, "none").high < 0 <= change.high
        assert worse or priced
    return name


def check(advice, contest, summaries):
    """Every statement of the advice, against the numbers."""
    usable = [one for one in contest.names if summaries[one]["attack_accuracy"]["value"]]
    if "none" not in usable:
        assert advice.startswith("No advice")
        return
    changes = {one: contest.leaking(one, "none") for one in usable if one != "none"}
    safer = [one for one, change in changes.items() if change.high < 0]
    worse = sorted(one for one, change in changes.items() if change.low > 0)
    assert ("is significantly more private than none: " in advice) == bool(safer)
    if safer:
        check_taken(advice, contest, summaries)
    else:
        assert "instead of" not in advice
        assert "the undefended baseline" in advice or "No defense is significantly" in advice
    listed = re.search(r"Significantly less private than none: (.*?)\.(?: |$)", advice)
    assert (names_in(listed[1]) if listed else []) == worse
    reduction = re.search(r"largest observed reduction is (\S+) points, by (.*?): no sig", advice)
    if reduction:
        (name,) = names_in(reduction[2])
        assert float(reduction[1]) > 0
        assert points(changes[name].to_dict()) == f"−{reduction[1]}"
        assert changes[name].value == min(change.value for change in changes.values())
        assert not significant(re.findall(r"difference (\S+ to \S+) points", advice)[0])
    if "No observed reduction" in advice:
        assert min(change.value for change in changes.values()) > -0.0005 - 1e-12
    assert not re.search(r"surely|most private|\bnan\b|unknown", advice)


def check_frontier(found, contest, summaries):
    """The frontier, and whether it is said where the seeds do not resolve it."""
    frontier = contest.frontier()
    assert frontier
    for name, summary in summaries.items():
        better = [
            other
            for other in contest.names
            if other != name
            and contest.accuracy(other, name).low > 0
            and contest.leaking(other, name).high < 0
        ]
        assert set(better) <= set(summary["beaten_by"])
        assert summary["frontier"] == (name in frontier) == (not summary["beaten_by"])
        for other in summary["undecided_against"]:
            assert contest.accuracy(name, other).low <= 0 or np.isnan(
                contest.accuracy(name, other).low
            )
            assert not contest.leaking(name, other).high < 0
    undecided = sorted(name for name in summaries if summaries[name]["undecided_against"])
    assert found["undecided"] == undecided
    assert found["resolved"] == (not undecided) == (not found["text"])
    assert set(undecided) <= set(frontier)
    if undecided:
        seeds = contest.observed_seeds
        assert found["text"].startswith(f"{seeds} seed{'s' * (seeds > 1)} cannot resolve the fron")
        assert found["text"].endswith(f"Undecided: {listed(undecided)}.")
        needed, half = found["seeds_needed"], found["seeds_for_half"]
        assert needed is None or half <= needed
        assert half is None or half > seeds
        if needed is None and half is not None:
            left = replace(contest, seeds=half).undecided()
            decided = len(undecided) - len(left)
            assert 2 * decided >= len(undecided)
            assert f"about {half} would decide {decided} of the {len(undecided)}" in found["text"]
    else:
        assert found["seeds_needed"] is found["seeds_for_half"] is None


def listed(names):
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def shown(contest, summaries, advice, found):
    """The comparison as a page and on a terminal."""
    setup = {
        "dataset": None, "recipe": "net", "records": 9, "classes": ["0", "1"], "members": [3],
        "reference": [3], "nonmembers": [3], "seeds": contest.observed_seeds, "seed": 0,
        "attacks": ["loss"], "shadows": 0, "persons": None, "baselines": [], "not_run": [],
        "how": {},
    }  # fmt: skip
    data = {
        "leakscope": "0", "created": "2026-01-01T00:00:00+00:00", "command": "compare",
        "setup": setup, "summary": [*summaries.values()], "frontier": contest.frontier(),
        "frontier_resolution": found, "advice": advice, "cost": {"models": 1, "seconds": 1.0},
    }  # fmt: skip
    console = Console(file=io.StringIO(), width=10_000)
    print_comparison(data, console)
    return render(data), console.file.getvalue()


def row_of(page, name):
    """The first cell of a defense in the table of the page."""
    return re.search(rf'rowheader">\d+ {re.escape(name)}<small>(.*?)</small>', page)[1]


@pytest.mark.parametrize("seed", range(200))
def test_no_statement_contradicts_the_table(contest, seed):
    made = contest(generate(np.random.default_rng(seed)))
    summaries = summaries_of(made)
    advice = Advisor(made, summaries, 0.1, KINDS).advice()
    check(advice, made, summaries)
    found = resolution(made)
    check_frontier(found, made, summaries)
    for name, summary in summaries.items():
        if name == "none":
            continue
        against = summary["against_none"]
        for key, sign, change in (
            ("privacy", -1, made.leaking(name, "none")),
            ("accuracy", 1, made.accuracy(name, "none")),
        ):
            ends = sorted((sign * change.low, sign * change.high))
            wanted = "better" if ends[0] > 0 else "worse" if ends[1] < 0 else ""
            assert against[key] == (wanted or "no significant difference")
    if seed % 20 == 0:
        page, terminal = shown(made, summaries, advice, found)
        assert advice in terminal
        assert found["text"] in terminal
        assert found["text"] in page
        for name, summary in summaries.items():
            mark = "?" if summary["undecided_against"] else "*" if summary["frontier"] else " "
            assert f"\n{mark} {name} " in terminal
            assert ("baseline" in row_of(page, name)) == (name in KINDS or name == "none")


def test_the_generated_comparisons_have_every_kind_of_advice(contest):
    texts = []
    for seed in range(200):
        made = contest(generate(np.random.default_rng(seed)))
        texts.append(Advisor(made, summaries_of(made), 0.1, KINDS).advice())
    for part in (
        "is significantly more private than none",
        "The baseline",
        "seeds cannot rank it against",
        "No defense is significantly more private",
        "largest observed reduction",
        "No observed reduction",
        "Significantly less private than none",
        "No figures for",
        "No advice",
        "significantly lower",
        "significantly higher",
        "No defense is needed",
        "; about ",
        "and 100 would not",
    ):
        assert any(part in text for text in texts), part
