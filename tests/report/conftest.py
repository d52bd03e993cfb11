"""Reports as an audit would write them, for the four levels of the verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from leakscope.metrics.intervals import fisher_p_value
from leakscope.report import RecordTable

LEVELS = ("leaks", "no_leak_found", "undecided", "invalid")

# What data may hold and no view may act on.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}{% raw %}",
    "[bold red]loud[/bold red]",
    r"$\frac{1}{0}$ & $",
    '=cmd("calc")',
    "</title></style></svg><a href='https://evil.example'>",
    "\x00\x1b[2J\u202eright to left\ud800",
    "名前 🙂 " + "long " * 80,
    "_underscore",
)

ATTACKS = (
    # attack, channel, paper, summary, knowledge, source of the threshold, separation of the scores
    ("gradient-boosting", "probabilities", "Shokri et al. 2017, section V",
     "Boosted trees taught on the prediction vectors of known members.",
     "members of the other half", "chosen on a fifth of the records, judged on the others", 1.0),
    ("modified-entropy", "modified-entropy", "Song & Mittal 2021, section 4.1",
     "A member where the modified entropy is lower than is usual for its class.",
     "none", "chosen on a fifth of the records, judged on the others", 0.95),
    ("loss", "loss", "Yeom et al. 2018, section 3.2",
     "A member where the loss is at most the average training loss.",
     "average training loss", "average training loss", 0.9),
    ("confidence", "probabilities", "Song & Mittal 2021, section 4.1",
     "A member where the true class is more probable than is usual for its class.",
     "none", "chosen on a fifth of the records, judged on the others", 0.9),
    ("entropy", "entropy", "Song & Mittal 2021, section 4.1",
     "A member where the prediction is less uncertain than is usual for its class.",
     "none", "chosen on a fifth of the records, judged on the others", 0.62),
    ("label-gap", "label", "Yeom et al. 2018, section 4",
     "A member where the predicted label is right.", "none", "fixed by the attack", 0.45),
)  # fmt: skip

# The separation of members' and non-members' scores relative to the table's.
SCALE = {"leaks": 1.0, "no_leak_found": 0.0, "undecided": 0.07, "invalid": 0.0}
SIZE = {"leaks": 2000, "no_leak_found": 2000, "undecided": 240, "invalid": 60}


def interval(value: float, half: float, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    return {"value": value, "low": max(value - half, low), "high": min(value + half, high)}


def group(name: str, value: str, n: int, advantage: float, everyone: float) -> dict[str, Any]:
    half = 1.96 / math.sqrt(n)
    excess = advantage - everyone
    return {
        "group": name, "value": value, "n": n, "members": n // 2, "nonmembers": n - n // 2,
        "advantage": interval(advantage, half, -1, 1),
        "adjusted_p": float(min(1, 6 * norm.sf(advantage * math.sqrt(n)))),
        "excess": interval(excess, 1.2 * half, -2, 2),
        "excess_adjusted_p": float(min(1, 12 * norm.sf(abs(excess) * math.sqrt(n) / 1.2))),
        "tails": [tail(fpr, fpr + advantage / 10, n // 2) for fpr in (0.01, 0.001)],
    }  # fmt: skip


def tail(fpr: float, tpr: float, n: int) -> dict[str, Any]:
    """The test of the highest scores, where this share of n members is found at this FPR."""
    found, accused = round(tpr * n), int(fpr * n)
    p = fisher_p_value(found, n, accused, n)
    return {
        "fpr": fpr, "found": found, "members": n, "accused": accused, "nonmembers": n,
        "p_value": p, "adjusted_p": min(1.0, 18 * p),
    }  # fmt: skip


def outcome(attack: tuple[Any, ...], scale: float, n: int) -> dict[str, Any]:
    """Gaussian scores of unit variance, the members' shifted by the separation."""
    name, channel, paper, summary, knowledge, source, separation = attack
    shift = separation * scale
    fpr = np.unique(np.concatenate([[0.0], np.geomspace(1 / n, 1, 120)]))
    tpr = np.where(fpr > 0, norm.sf(norm.isf(np.clip(fpr, 1e-12, 1)) - shift), 0.4 / n)
    edges = np.linspace(-4, 5, 37)
    shares = {
        side: np.diff(norm.cdf(edges, loc=at)) / np.diff(norm.cdf(edges, loc=at)).sum()
        for side, at in (("members", shift), ("nonmembers", 0.0))
    }
    advantage = float(2 * norm.cdf(shift / 2) - 1)
    half = 1.96 / math.sqrt(2 * n)
    p = float(norm.sf(advantage * math.sqrt(2 * n)))
    rates = []
    for rate in (0.001, 0.01, 0.05):
        value = float(norm.sf(norm.isf(rate) - shift))
        resolved = rate * n >= 5
        spread = 1.96 * math.sqrt(value * (1 - value) / n) * 1.5
        rates.append({"fpr": rate, **interval(value, spread), "resolved": resolved})
    found = norm.sf(shift / 2 - shift)
    trusted = float(found / (found + norm.sf(shift / 2)))
    return {
        "attack": name, "channel": channel, "paper": paper, "summary": summary,
        "knowledge": knowledge,
        "options": {},
        "auc": interval(float(norm.cdf(shift / math.sqrt(2))), 0.58 * half),
        "advantage": interval(advantage, half, -1, 1),
        "accuracy": interval((1 + advantage) / 2, half / 2),
        "threshold": {"value": shift / 2, "source": source},
        "rates": {
            "tpr": float(found), "fpr": float(norm.sf(shift / 2)), "members": n, "nonmembers": n,
        },
        "tpr_at_fpr": rates,
        "tails": [tail(rate["fpr"], rate["value"], n) for rate in (rates[1], rates[0])],
        "ppv": {"prior": 0.5, **interval(trusted, half)},
        "epsilon_lower": None,
        "epsilon_note": "Chance did not decide who is a member, so no lower bound on ε is given.",
        "models": 1, "p_value": p, "adjusted_p": min(1.0, len(ATTACKS) * p),
        "curve": {"fpr": fpr.tolist(), "tpr": tpr.tolist()},
        "histogram": {"edges": edges.tolist()} | {k: v.tolist() for k, v in shares.items()},
        "groups": [
            group("sex", "Female", int(0.33 * 2 * n), 0.86 * advantage, advantage),
            group("sex", "Male", int(0.67 * 2 * n), 1.07 * advantage, advantage),
            group("age", "17–29", int(0.3 * 2 * n), 0.62 * advantage, advantage),
            group("age", "30–44", int(0.37 * 2 * n), 1.04 * advantage, advantage),
            group("age", "45–59", int(0.23 * 2 * n), 1.42 * advantage, advantage),
            group("age", "60 and over", int(0.1 * 2 * n), 1.2 * advantage, advantage),
            group("race", "White", int(0.855 * 2 * n), 1.01 * advantage, advantage),
            group("race", "Black", int(0.095 * 2 * n), 0.8 * advantage, advantage),
            group("race", "Other", int(0.05 * 2 * n), 1.1 * advantage, advantage),
        ],
    }  # fmt: skip


def verdict(level: str) -> dict[str, Any]:
    headline, attack, needed, reason = {
        "leaks": (
            "This model leaks membership: the gradient-boosting attack is right "
            "about 69 of 100 people, where guessing is right about 50.",
            "gradient-boosting", None,
            "The gradient-boosting attack has an advantage of 0.383 (95% interval 0.352 to 0.414), "
            "above 0 after correction for 6 attacks (adjusted p = 1.8e-127).",
        ),
        "no_leak_found": (
            "No leak found: none of 6 attacks can have an advantage above 0.1.",
            "gradient-boosting", None,
            "The highest upper bound is that of the gradient-boosting attack, with an advantage of "
            "0.000 (95% interval -0.031 to 0.031); stronger attacks than these may exist.",
        ),
        "undecided": (
            "Undecided: these records show no leak, and cannot rule out an advantage above 0.1; "
            "about 770 records on each side would decide.",
            "gradient-boosting", 770,
            "The gradient-boosting attack has an advantage of 0.028 (95% interval -0.062 to "
            "0.117), which holds both 0 and more than the limit of 0.1.",
        ),
        "invalid": (
            "This audit cannot tell: its control of the blind baseline failed.",
            None, None, controls(level)[2]["detail"],
        ),
    }[level]  # fmt: skip
    return {
        "level": level, "headline": headline, "attack": attack, "limit": 0.1,
        "attack_at_low_fpr": attack if level == "leaks" else None, "tail_limit": 5.0,
        "within_limit": False, "records_to_decide": needed, "reason": reason, "conditions": [],
    }  # fmt: skip


def controls(level: str) -> list[dict[str, Any]]:
    blind = level != "invalid"
    told = "A classifier that sees the records and never the model has AUC "
    n = SIZE[level]
    return [{**control, "assumption": ""} for control in [
        {"name": "overlap", "passed": True, "fatal": True,
         "detail": "15 of 2000 non-members (0.8%) are also members (14 equal, 1 equal within "
         "rounding, 0 of a person who is also a member) and were taken out."},
        {"name": "number of records", "passed": n >= 100, "fatal": n >= 100,
         "detail": f"{n} members and {n - n // 130} non-members."
         if n >= 100 else f"{n} members and {n} non-members are few: expect wide intervals."},
        {"name": "blind baseline", "passed": blind, "fatal": True,
         "detail": f"{told}0.503 (permutation p = 0.41): the two sides are alike, as they must be."
         if blind else
         f"{told}0.712 (permutation p = 0.0005): the two sides differ before the model enters, so "
         "no attack's success means anything; draw members and non-members at random from one "
         "population."},
        {"name": "constant model", "passed": True if blind else None, "fatal": True,
         "detail": "On a model that says the same of everyone, all 6 attacks are at chance."
         if blind else "No attack was scored."},
        {"name": "constant scores", "passed": True, "fatal": False,
         "detail": "Every attack's scores vary over the records."},
        {"name": "accuracy of the target", "passed": True, "fatal": False,
         "detail": "The model is right for 98.1% of members and 84.6% of non-members (gap +0.135, "
         "95% interval +0.118 to +0.152)."},
    ]]  # fmt: skip


def make_report(level: str = "leaks") -> dict[str, Any]:
    """A report that obeys the schema, as rich as they come; invalid reports have no outcomes."""
    n, scale = SIZE[level], SCALE[level]
    outcomes = [] if level == "invalid" else [outcome(attack, scale, n) for attack in ATTACKS]
    if level == "leaks":
        outcomes[0]["epsilon_lower"] = {
            "value": 0.83, "delta": 1e-5, "confidence": 0.95, "method": "one-run",
        }  # fmt: skip
        outcomes[0]["epsilon_note"] = ""
    return {
        "schema_version": 2,
        "leakscope": "0.1.0",
        "created": "2026-11-15T20:00:00+00:00",
        "command": "leakscope audit --dataset adult --seed 0 --out run/",
        "seed": 0,
        "target": {
            "model": "RandomForestClassifier", "task": "classification", "dataset": "adult",
            "classes": ["<=50K", ">50K"],
            "class_sizes": {"members": [n - n // 4, n // 4], "nonmembers": [n - n // 3, n // 3]},
            "features": 104, "members": n, "nonmembers": n - n // 130,
            "unit": None, "units": None,
            "member_accuracy": interval(0.981, 0.006),
            "nonmember_accuracy": interval(0.846, 0.016),
            "gap": interval(0.135, 0.017, -1, 1),
            "member_error": None, "nonmember_error": None,
            "missing_values": 0, "clipped": 12, "randomized": level == "leaks", "prior": 0.5,
        },
        "trials": None,
        "controls": controls(level),
        "outcomes": outcomes,
        "additions": [],
        "disclosures": [],
        "leakage": [],
        "not_run": [
            {"attack": "gaussian-error",
             "reason": "It needs a model that predicts numbers, and this one predicts classes."},
            {"attack": "robustness",
             "reason": "Saved predictions cannot be asked about noisy copies of the records."},
        ],
        "verdict": verdict(level),
        "cost": {"models": 1, "seconds": 12.3, "threads": 1},
    }  # fmt: skip


def make_regression() -> dict[str, Any]:
    """A regression: no classes and no accuracy, errors instead."""
    report = make_report("undecided")
    report["target"] |= {
        "model": "GradientBoostingRegressor", "task": "regression", "dataset": "diabetes",
        "classes": None, "class_sizes": None,
        "member_accuracy": None, "nonmember_accuracy": None, "gap": None,
        "member_error": 31.52, "nonmember_error": 58.07, "unit": "patient_nbr",
        "units": {"members": 180, "nonmembers": 171},
    }  # fmt: skip
    report["outcomes"] = report["outcomes"][2:3]
    for one in report["outcomes"]:
        one["groups"] = []
    return report


def poison(value: Any, texts: Iterator[str]) -> Any:
    """The same report with every free string replaced by the next of the texts."""
    if isinstance(value, dict):
        kept = {"task", "level", "extraction"}
        return {key: item if key in kept else poison(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [poison(item, texts) for item in value]
    return next(texts) if isinstance(value, str) else value


def make_leakage() -> list[dict[str, Any]]:
    """Four measures of leakage, one of them without an interval."""
    null = {"mean": 0.0, "high": 0.012, "p_value": 0.02, "permutations": 49}
    figures = {
        "output_mutual_information": (0.112, 0.099, 0.154, 0.464, 0.437, 0.489, 0.0),
        "output_divergence": (0.76, 0.71, 0.81, 0.436, 0.421, 0.45, 0.113),
        "output_advantage": (0.344, 0.322, 0.365, None, None, None, None),
        "parameter_rho_kl": (0.1, None, None, 0.158, None, None, None),
    }
    keys = ("value", "low", "high", "bound", "bound_low", "bound_high", "null_bound")
    return [
        {
            "measure": measure, "channel": "margin", "models": 32, "null": dict(null),
            "underestimate": 0.029,
            "note": f"What {measure} is: a lower bound on what the parameters tell.",
            "groups": [
                {"group": "sex", "value": value, "n": 1300,
                 "mean": {"value": 0.2, "low": 0.15, "high": None}, "null": dict(null)}
                for value in ("Female", "Male")
            ],
            "best_attack": {"attack": "lira", "advantage": interval(0.377, 0.04, -1, 1)},
            **dict(zip(keys, values, strict=True)),
        }
        for measure, values in figures.items()
    ]  # fmt: skip


def share(group: str, value: str, k: int, n: int, recovered: int) -> dict[str, Any]:
    rate = recovered / n
    half = 1.96 * math.sqrt(rate * (1 - rate) / n)
    return {
        "group": group, "value": value, "k": k, "n": n, "recovered": recovered,
        "share": interval(rate, half),
    }  # fmt: skip


def make_disclosures() -> list[dict[str, Any]]:
    """What five extractions bring back from 2,000 members, 700 of them women."""

    def told(extraction: str, k: int, shown: int, queries: int, **more: Any) -> dict[str, Any]:
        everyone = share("all", "everyone", k, 2000, shown)
        return {
            "extraction": extraction, "paper": "Shokri, Strobel & Zick 2021, section 5", "k": k,
            "show": "records", "recovered": shown, "bound": None, "queries": queries,
            "shown": shown, "stopped": "every query had been asked", "groups": [everyone],
            "curve": {"queries": [0, 1, queries], "shown": [0, k, shown]},
            "details": {"budget": 100_000},
        } | more  # fmt: skip

    revealed = [
        share(*one, k, n, hits)
        for k, found in ((1, (200, 50, 150)), (5, (400, 90, 310)), (10, (540, 120, 420)))
        for one, n, hits in zip(
            [("all", "everyone"), ("sex", "Female"), ("sex", "Male")],
            (2000, 700, 1300),
            found,
            strict=True,
        )
    ]
    others = [
        {"k": k, "n": 1969, "recovered": hits, "share": interval(hits / 1969, 0.005),
         "excess": interval(found / 2000 - hits / 1969, 0.02, -1, 1)}
        for k, hits, found in ((1, 10, 200), (5, 20, 400), (10, 30, 540))
    ]  # fmt: skip
    walked = {"budget": 100_000, "reach_median": 170.0, "graph": {"in_degree_0": 1616}}
    return [
        told(
            "self-reveal", 10, 560, 2000, groups=revealed, recovered=540, bound=2000,
            details={"budget": 100_000, "twins": 20, "others": others},
        ),
        told("traversal", 5, 171, 171, details=walked),
        told("static", 5, 374, 1969),
        told("reconstruction", 1, 130, 10_000, recovered=93, bound=93, show="signed"),
        told("reconstruction", 5, 319, 10_534, recovered=207, bound=465, show="signed"),
    ]  # fmt: skip


def make_additions() -> list[dict[str, Any]]:
    """What all explanations add to predictions, and what each of two adds."""

    def added(explanation: str, attack: str, value: float, half: float) -> dict[str, Any]:
        return {
            "explanation": explanation, "attack": attack, "attacks": 12, "beside": "loss",
            "attacks_beside": 7, "increase": interval(value, half, -2, 2),
        }  # fmt: skip

    return [
        added("explanations", "gradient-forest", 0.062, 0.041),
        added("gradient", "gradient-forest", 0.062, 0.039),
        added("lrp", "lrp-sum", -0.183, 0.05),
    ]


def make_full_report() -> dict[str, Any]:
    """A report in which every part is there."""
    full = make_report("leaks")
    full["additions"] = make_additions()
    full["disclosures"] = make_disclosures()
    full["leakage"] = make_leakage()
    full["controls"][0]["passed"] = False
    full["trials"] = {
        "recipe": "forest", "models": 4, "members": 1987, "threads": 1,
        "experiment": {
            "models": 4, "splits": 2, "advantages": [0.2, 0.25, 0.3, 0.31],
            "mean": interval(0.265, 0.05, -1, 1), "median": 0.275, "q1": 0.2375, "q3": 0.3025,
        },
    }  # fmt: skip
    full["outcomes"][0]["models"] = 5
    return full


@pytest.fixture(params=LEVELS)
def report(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A report of each level in turn."""
    return make_report(request.param)


@pytest.fixture
def leak() -> dict[str, Any]:
    """A report of a leak."""
    return make_report("leaks")


@pytest.fixture
def leakage() -> list[dict[str, Any]]:
    """The part of a report about leakage."""
    return make_leakage()


@pytest.fixture
def disclosures() -> list[dict[str, Any]]:
    """The part of a report about extractions."""
    return make_disclosures()


@pytest.fixture(name="make_report")
def make_report_fixture() -> Callable[[str], dict[str, Any]]:
    """A report of the level asked for."""
    return make_report


@pytest.fixture
def regression() -> dict[str, Any]:
    """A report of a regression, by person and without groups."""
    return make_regression()


@pytest.fixture
def hostile_texts() -> tuple[str, ...]:
    """Texts that attack the reader of a report."""
    return HOSTILE


@pytest.fixture(params=range(len(HOSTILE)))
def hostile(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """A text that attacks the reader, and a report in which every string is that text."""
    text = HOSTILE[request.param]
    return text, poison(make_full_report(), itertools.repeat(text))


@pytest.fixture
def mixed() -> dict[str, Any]:
    """A report in which each string is one of the texts that attack the reader, in turn."""
    return poison(make_full_report(), itertools.cycle(HOSTILE))  # type: ignore[no-any-return]


@pytest.fixture
def table() -> RecordTable:
    """Three records with one group, a unit and one score."""
    return RecordTable.from_parts(
        row=np.array([0, 1, 0]),
        side=np.array(["member", "member", "nonmember"]),
        label=np.array(["<=50K", ">50K", "<=50K"]),
        groups={"sex": np.array(["F", "M", "F"])},
        unit=("person", np.array([7, 8, 9])),
        scores={"loss": np.array([-0.25, np.nan, 1e-9])},
        vulnerable=np.array([True, False, False]),
    )


@pytest.fixture
def additions() -> list[dict[str, Any]]:
    return make_additions()
