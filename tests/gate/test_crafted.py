"""The gate never exits with 0 on what is untested, incomparable, invalid or contradictory.

Every row changes one thing of a real report that holds, or of its baseline.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope.errors import LeakscopeError
from leakscope.gate import check
from leakscope.metrics.intervals import fisher_p_value, holm
from leakscope.report import Report

Json = dict[str, Any]
Change = Callable[[Json], object]

LIMITS: dict[str, Any] = {
    "max_advantage": 0.1, "max_auc": 0.6, "max_tpr": "0.05@0.01", "require": ["loss"],
}  # fmt: skip
ATTACKS = ["loss", "label-gap", "confidence", "gradient-boosting"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit of a well-regularized model, in files; its data set is not named."""
    records = leakscope.load_dataset("adult").sample(6000, seed=1)
    members, nonmembers = records.coin_split(seed=2)
    model = LogisticRegression(C=0.01, max_iter=500).fit(members.X, members.y)
    place = tmp_path_factory.mktemp("real")
    leakscope.audit(model, members, nonmembers, attacks=ATTACKS, out=place)
    data = json.loads((place / "report.json").read_text("utf-8"))
    data["target"]["dataset"] = None  # as that of records that were handed in
    (place / "report.json").write_text(json.dumps(data), "utf-8")
    return place


@pytest.fixture(scope="module")
def real(folder: Path) -> Json:
    found: Json = json.loads((folder / "report.json").read_text("utf-8"))
    return found


def put(*path: Any) -> Change:
    """Set the value at a path, whose first parts are keys and whose last part is the value."""
    *keys, last, value = path

    def change(data: Json) -> None:
        for key in keys:
            data = _attack(data, key) if isinstance(data, list) and key in ATTACKS else data[key]
        data[last] = value

    return change


def _attack(outcomes: list[Json], name: str) -> Json:
    return next(one for one in outcomes if one["attack"] == name)


def outcome(attack: str, *path: Any) -> Change:
    return put("outcomes", attack, *path)


def drop(*path: Any) -> Change:
    *keys, last = path

    def change(data: Json) -> None:
        for key in keys:
            data = _attack(data, key) if isinstance(data, list) and key in ATTACKS else data[key]
        del data[last]

    return change


def control(name: str, **values: Any) -> Change:
    def change(data: Json) -> None:
        next(one for one in data["controls"] if one["name"] == name).update(values)

    return change


def no_control(name: str) -> Change:
    def change(data: Json) -> None:
        data["controls"] = [one for one in data["controls"] if one["name"] != name]

    return change


def constant(*names: str) -> Change:
    """These attacks as an earlier version told of scores that are all the same."""

    def change(data: Json) -> None:
        for name in names:
            one = _attack(data["outcomes"], name)
            one["auc"] = {"value": 0.5, "low": 0.5, "high": 0.5}
            one["curve"] = {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]}
            for rate in one["tpr_at_fpr"]:
                rate.update(value=0.0, low=0.0, high=0.001)

    return change


def readjusted(data: Json) -> None:
    """Holm's correction over the tests that are left, as an audit of them alone would have it."""
    tests = [test for one in data["outcomes"] for test in (one, *one["tails"])]
    for test, p in zip(tests, holm([test["p_value"] for test in tests]), strict=True):
        test["adjusted_p"] = p


def only(*names: str) -> Change:
    def change(data: Json) -> None:
        data["outcomes"] = [one for one in data["outcomes"] if one["attack"] in names]
        data["verdict"]["attack"] = names[0] if names else None

    return every(change, readjusted)


def every(*changes: Change) -> Change:
    def change(data: Json) -> None:
        for one in changes:
            one(data)

    return change


def shifted(attack: str, key: str, by: float) -> Change:
    """An interval that was moved as a whole."""

    def change(data: Json) -> None:
        figure = _attack(data["outcomes"], attack)[key]
        figure.update({end: figure[end] + by for end in ("value", "low", "high")})

    return change


def rate(attack: str, at: float, **values: Any) -> Change:
    def change(data: Json) -> None:
        rates = _attack(data["outcomes"], attack)["tpr_at_fpr"]
        next(one for one in rates if one["fpr"] == at).update(values)

    return change


def curve(attack: str, change_points: Callable[[list[float], list[float]], object]) -> Change:
    def change(data: Json) -> None:
        points = _attack(data["outcomes"], attack)["curve"]
        change_points(points["fpr"], points["tpr"])

    return change


def twice(attack: str) -> Change:
    def change(data: Json) -> None:
        data["outcomes"].append(copy.deepcopy(_attack(data["outcomes"], attack)))

    return change


def tails(attack: str, *, more: int = 0, **values: Any) -> Change:
    """The first test of the highest scores with this many members more, and what follows."""

    def change(data: Json) -> None:
        test = _attack(data["outcomes"], attack)["tails"][0]
        test["found"] += more
        counts = [test[key] for key in ("found", "members", "accused", "nonmembers")]
        test["p_value"] = fisher_p_value(*counts)
        test["adjusted_p"] = min(1.0, 12 * test["p_value"])
        test.update(values)

    return change


def failed_control(name: str) -> Change:
    def change(data: Json) -> None:
        control = next(one for one in data["controls"] if one["name"] == name)
        control["passed"] = False

    return change


CONTRADICTIONS: dict[str, Change] = {
    "no leak found with a significant attack": outcome("loss", "adjusted_p", 0.001),
    "no leak found with a significant tail": tails("loss", more=60),
    "a tail adjusted below its p-value": tails("loss", adjusted_p=0.0001),
    "a tail whose p-value does not follow": tails("loss", found=2000),
    "a tail with more found than there are": tails("loss", found=10**6),
    "a tail with more accused than its rate": tails("loss", accused=500),
    "a tail of more members than there are": tails("loss", members=10**6),
    "a tail of another rate": tails("loss", fpr=0.2),
    "no tests of the highest scores": outcome("loss", "tails", []),
    "a tail without a p-value": tails("loss", p_value=None, adjusted_p=None),
    "a tail without an adjusted p-value": tails("loss", adjusted_p=None),
    "an adjusted p-value that is not Holm's": outcome("loss", "adjusted_p", 0.999),
    "no TPR at the rate of the limit": outcome("loss", "tpr_at_fpr", []),
    "an accuracy that the verdict ignores": failed_control("accuracy of the target"),
    "undecided with a significant attack": every(
        put("verdict", "level", "undecided"), outcome("loss", "adjusted_p", 0.001)
    ),
    "a leak that no attack shows": put("verdict", "level", "leaks"),
    "no leak found above the limit": put("verdict", "limit", 0.001),
    "a leak within a limit that it exceeds": every(
        put("verdict", "level", "leaks"), put("verdict", "within_limit", True),
        put("verdict", "limit", 0.001), tails("loss", more=60),
    ),
    "a leak within a tail limit that it exceeds": every(
        put("verdict", "level", "leaks"), put("verdict", "within_limit", True),
        put("verdict", "tail_limit", 1.0), tails("loss", more=60),
    ),
    "no leak found above the tail limit": put("verdict", "tail_limit", 1.0),
    "a verdict on an attack without figures": put("verdict", "attack", "lira"),
    "an advantage above its interval": outcome("loss", "advantage", "value", 0.9),
    "an advantage below its interval": outcome("loss", "advantage", "value", -0.9),
    "an AUC outside its interval": outcome("loss", "auc", "value", 0.9),
    "a TPR outside its interval": rate("loss", 0.01, value=0.9),
    "an interval turned round": outcome("loss", "auc", {"value": 0.5, "low": 0.6, "high": 0.4}),
    "an advantage that is not that of the rates": outcome("loss", "rates", "tpr", 0.99),
    "a moved advantage": shifted("loss", "advantage", 0.01),
    "a narrow advantage": outcome("loss", "advantage", "high", 0.006),
    "rates of fewer records": outcome("loss", "rates", "members", 100.0),
    "rates of more records than there are": outcome("loss", "rates", "members", 1e6),
    "rates of more non-members than there are": outcome("loss", "rates", "nonmembers", 1e6),
    "rates of nobody": outcome("loss", "rates", "members", 0),
    "an accuracy of another advantage": outcome("loss", "accuracy", "value", 0.9),
    "a p-value of other rates": outcome("loss", "p_value", 0.0001),
    "an adjusted p-value below the p-value": outcome("confidence", "adjusted_p", 0.03),
    "no members": put("target", "members", 0),
    "no non-members": put("target", "nonmembers", 0),
    "fewer members than were judged": put("target", "members", 500),
    "more persons than records": put(
        "target", "units", {"members": 10**6, "nonmembers": 10**6}
    ),
    "a few persons": put("target", "units", {"members": 3, "nonmembers": 3}),
    "an attack that ran and did not": put(
        "not_run", [{"attack": "loss", "reason": "It failed."}]
    ),
    "an attack twice": twice("loss"),
    "a strange attack twice": every(twice("loss"), put("outcomes", 4, "auc", "high", 0.9)),
    "a failed overlap": control("overlap", passed=False),
    "a failed blind baseline": control("blind baseline", passed=False),
    "a failed constant model": control("constant model", passed=False),
    "a failed size": control("number of records", passed=False),
    "no control": put("controls", []),
    "no overlap control": no_control("overlap"),
    "no blind baseline": no_control("blind baseline"),
    "no constant model": no_control("constant model"),
    "no size control": no_control("number of records"),
    "a resolved rate of few non-members": every(
        rate("gradient-boosting", 0.001, resolved=True, effective_nonmembers=None)
    ),
    "a resolved rate of fewer effective ones": rate("loss", 0.01, effective_nonmembers=100.0),
    "a rate of more non-members than there are": rate("loss", 0.01, effective_nonmembers=1e7),
    "an unresolved rate of enough": rate("loss", 0.01, resolved=False),
    "two rates at one FPR": rate("loss", 0.001, fpr=0.01),
    "a curve that falls": curve("loss", lambda fpr, tpr: tpr.__setitem__(50, 0.0)),
    "a curve that goes back": curve("loss", lambda fpr, tpr: fpr.__setitem__(50, 0.0)),
    "a curve that starts elsewhere": curve("loss", lambda fpr, tpr: tpr.__setitem__(0, 0.5)),
    "a curve that ends elsewhere": curve("loss", lambda fpr, tpr: tpr.__setitem__(-1, 0.9)),
    "a curve without points": curve("loss", lambda fpr, tpr: (fpr.clear(), tpr.clear())),
    "a curve of one point": outcome("loss", "curve", {"fpr": [0.0], "tpr": [0.0]}),
    "a curve with fewer TPRs": curve("loss", lambda fpr, tpr: tpr.pop()),
    "a perfect curve": outcome("loss", "curve", {"fpr": [0.0, 0.0, 1.0], "tpr": [0.0, 1.0, 1.0]}),
    "a TPR above the curve": rate("loss", 0.01, value=0.04, high=0.045),
    "a TPR below the curve": rate("loss", 0.05, value=0.0, low=0.0),
    "an AUC off the curve": shifted("loss", "auc", 0.05),
}  # fmt: skip

MALFORMED: dict[str, Change] = {
    "an unknown verdict": put("verdict", "level", "fine"),
    "no verdict": put("verdict", "level", None),
    "another schema": put("schema_version", 99),
    "no schema": drop("schema_version"),
    "no limit": put("verdict", "limit", None),
    "a negative limit": put("verdict", "limit", -0.1),
    "a limit above 1": put("verdict", "limit", 1.5),
    "a limit in words": put("verdict", "limit", "0.1"),
    "no tail limit": put("verdict", "tail_limit", None),
    "a tail limit of nothing": put("verdict", "tail_limit", 0.0),
    "within the limit in words": put("verdict", "within_limit", "yes"),
    "an outcome without tails": drop("outcomes", "loss", "tails"),
    "a figure in words": outcome("loss", "auc", "high", "0.5"),
    "a figure that is true": outcome("loss", "advantage", "high", True),
    "a figure out of range": outcome("loss", "advantage", "high", 1.5),
    "an endless size": outcome("loss", "rates", "members", 1e300),
    "resolved in words": rate("loss", 0.01, resolved="yes"),
    "members that are true": put("target", "members", True),
    "a control that passed in words": control("overlap", passed="yes"),
    "a control fatal in words": control("overlap", fatal="no"),
    "no outcomes at all": drop("outcomes"),
    "outcomes that are none": put("outcomes", None),
    "an outcome without rates": drop("outcomes", "loss", "rates"),
    "an outcome without a curve": drop("outcomes", "loss", "curve"),
    "a fingerprint in words": put("target", "fingerprint", "abc"),
    "half a fingerprint": put("target", "fingerprint", {"columns": "abc"}),
    "a fingerprint of numbers": put(
        "target", "fingerprint", {"columns": 1, "members": 2, "nonmembers": 3}
    ),
}

UNTESTED: dict[str, Change] = {
    "an invalid verdict": put("verdict", "level", "invalid"),
    "no attack": only(),
    "a verdict on no attack": every(
        put("verdict", "level", "undecided"), put("verdict", "attack", None)
    ),
    "a constant attack alone": every(only("loss"), constant("loss")),
    "constant attacks alone": constant(*ATTACKS),
    "all attacks on other channels": every(
        only("loss"), outcome("loss", "channel", "robustness")
    ),
    "an AUC without a value": outcome("loss", "auc", "value", None),
    "an AUC without an upper end": outcome("loss", "auc", "high", None),
    "an advantage without an upper end": outcome("loss", "advantage", "high", None),
    "an advantage without a lower end": outcome("loss", "advantage", "low", None),
    "rates without a size": outcome("loss", "rates", "members", None),
    "no p-value": outcome("loss", "p_value", None),
    "no adjusted p-value": outcome("loss", "adjusted_p", None),
    "a TPR without a value": rate("loss", 0.01, value=None),
    "a TPR without an upper end": rate("loss", 0.01, high=None),
    "an attack without the TPR": outcome("loss", "tpr_at_fpr", []),
    "a required attack that is constant": constant("loss"),
    "a required attack that did not run": every(
        only("label-gap", "confidence"), put("not_run", [{"attack": "loss", "reason": "No."}])
    ),
}  # fmt: skip


def code_of(data: Json, folder: Path, **options: Any) -> int:
    """The exit code for a changed report, from a file and from an object alike."""
    path = folder / "report.json"
    path.write_text(json.dumps(data), "utf-8")
    codes = set()
    for report in (path, Report):
        try:
            given = path if report is path else Report(json.loads(path.read_text("utf-8")))
            codes.add(check(given, **options).exit_code)
        except LeakscopeError:
            codes.add(2)
    (code,) = codes
    return code


def changed(real: Json, change: Change) -> Json:
    data = copy.deepcopy(real)
    change(data)
    assert data != real
    return data


def test_the_report_holds_as_it_is(real: Json, folder: Path, tmp_path: Path) -> None:
    assert real["verdict"]["level"] == "no_leak_found"
    assert code_of(real, tmp_path, **LIMITS) == 0
    assert code_of(real, tmp_path) == 0
    assert check(folder, baseline=folder, tolerance=0).exit_code == 0
    # One constant attack, or one that a later version names, does not keep a limit open.
    assert code_of(changed(real, constant("confidence")), tmp_path, **LIMITS) == 0
    assert code_of(changed(real, tails("loss", more=3)), tmp_path, **LIMITS) == 0
    redacted = Report(real).redacted().to_dict()
    assert code_of(redacted, tmp_path, **LIMITS) == 0


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_contradiction_is_refused(what: str, real: Json, tmp_path: Path) -> None:
    data = changed(real, CONTRADICTIONS[what])
    assert code_of(data, tmp_path, **LIMITS) == 2
    assert code_of(data, tmp_path, max_advantage=0.9) == 2
    assert code_of(data, tmp_path) == 2


@pytest.mark.parametrize("what", MALFORMED)
def test_what_does_not_follow_the_schema_is_refused(what: str, real: Json, tmp_path: Path) -> None:
    data = changed(real, MALFORMED[what])
    assert code_of(data, tmp_path, **LIMITS) == 2
    assert code_of(data, tmp_path, max_advantage=0.9) == 2


@pytest.mark.parametrize("what", UNTESTED)
def test_what_was_not_tested_does_not_hold(what: str, real: Json, tmp_path: Path) -> None:
    assert code_of(changed(real, UNTESTED[what]), tmp_path, **LIMITS) in (2, 3)


def lacking(*names: str) -> Change:
    return only(*(name for name in ATTACKS if name not in names))


# The change of the baseline, of the report, and the exit code.
BASELINES: dict[str, tuple[Change | None, Change | None, int]] = {
    "an invalid baseline": (put("verdict", "level", "invalid"), None, 3),
    "a baseline without attacks": (only(), None, 3),
    "a constant baseline": (constant(*ATTACKS), None, 3),
    "a baseline of an earlier version": (drop("target", "fingerprint"), None, 3),
    "a report of an earlier version": (None, drop("target", "fingerprint"), 3),
    "both of an earlier version": (
        drop("target", "fingerprint"), drop("target", "fingerprint"), 3
    ),
    "an attack that only the baseline has": (None, lacking("confidence"), 3),
    "an attack that is constant now": (None, constant("confidence"), 3),
    "no attack in common": (only("loss"), only("confidence"), 3),
    "an attack without figures": (outcome("loss", "advantage", "high", None), None, 3),
    "a contradictory baseline": (outcome("loss", "adjusted_p", 0.001), None, 2),
    "a malformed baseline": (put("verdict", "level", "fine"), None, 2),
    "a baseline of another schema": (put("schema_version", 99), None, 2),
    "another task": (put("target", "task", "regression"), None, 2),
    "other classes": (put("target", "classes", ["0", "2"]), None, 2),
    "other features": (put("target", "features", 7), None, 2),
    "other columns": (
        put("target", "fingerprint", {"columns": "x", "members": "y", "nonmembers": "z"}), None, 2
    ),
    "other records": (put("target", "fingerprint", "members", "x"), None, 2),
    "other non-members": (put("target", "fingerprint", "nonmembers", "x"), None, 2),
    "swapped sides": (
        every(
            put("target", "fingerprint", "members", "x"),
            put("target", "fingerprint", "nonmembers", "y"),
        ),
        every(
            put("target", "fingerprint", "members", "y"),
            put("target", "fingerprint", "nonmembers", "x"),
        ),
        2,
    ),
    "withheld records": (put("target", "fingerprint", "members", None), None, 2),
    "as many records as there are not": (put("target", "members", 3100), None, 2),
    "another data set": (put("target", "dataset", "a"), put("target", "dataset", "b"), 2),
}  # fmt: skip


@pytest.mark.parametrize("what", BASELINES)
def test_what_cannot_be_compared_does_not_hold(what: str, real: Json, tmp_path: Path) -> None:
    before, now, code = BASELINES[what]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(changed(real, before) if before else real), "utf-8")
    data = changed(real, now) if now else real
    assert code_of(data, tmp_path, baseline=path) == code
    # Nor where the user compares with other records on purpose, but for the records.
    allowed = code_of(data, tmp_path, baseline=path, allow_other_records=True)
    only_records = what in ("other records", "other non-members", "withheld records")
    assert allowed == (3 if only_records else code)


def test_attacks_that_the_baseline_lacks(real: Json, folder: Path, tmp_path: Path) -> None:
    """They must be within the limit of the report, or the one that is given."""
    old = tmp_path / "old.json"
    old.write_text(json.dumps(changed(real, only("label-gap"))), "utf-8")
    assert code_of(real, tmp_path, baseline=old) == 0  # within the limit of 0.1
    found = check(folder, baseline=old, max_advantage=0.01)
    assert [str(one.decision) for one in found.limits] == ["undecided", "undecided"]


def test_there_are_about_a_hundred_of_them() -> None:
    assert sum(map(len, (CONTRADICTIONS, MALFORMED, UNTESTED, BASELINES))) >= 100
