from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import jsonschema
import pytest

from gated import attacked, audited, report_of
from leakscope.errors import InputError
from leakscope.gate.reading import read_report
from leakscope.report import Report, load_schema

FOUND = {0.01: (0.02, 0.01, 0.03), 0.05: (0.1, 0.05, 0.2)}
AUDIT = audited(
    attacked("loss", 0.6, 0.5, found=FOUND),
    attacked("lira", 0.9, 0.1, models=33, resolved=False, found={0.01: (0.2, 0.0, 0.9)}),
    sides=(2000, 1500),
    persons=(200, 150),
    dataset="adult",
    recovered=(("self-reveal", 3), ("static", 7)),
    not_run={"rmia": "It was not asked for."},
)


def test_what_is_read_is_what_the_report_tells() -> None:
    report = report_of(AUDIT)
    jsonschema.validate(report.to_dict(), load_schema())
    assert read_report(report) == AUDIT.__class__(**{**vars(AUDIT), "name": "report"})


def test_from_a_file_and_from_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(report_of(AUDIT).to_json(), "utf-8")
    for given in (path, str(path), tmp_path):
        read = read_report(given)
        assert read.name == str(given)
        assert read.attacks == AUDIT.attacks
    assert read.ran == {"loss", "lira", "self-reveal", "static"}


def test_rows_count_for_themselves_where_there_are_no_persons() -> None:
    read = read_report(report_of(audited(attacked())))
    assert read.persons == read.sides == (1000, 1000)


def test_an_audit_without_attacks_is_invalid_whatever_its_verdict() -> None:
    assert read_report(report_of(audited())).invalid
    assert read_report(report_of(audited(attacked(), level="invalid"))).invalid
    assert not read_report(report_of(AUDIT)).invalid


def test_a_number_that_is_missing_is_not_a_number() -> None:
    data = report_of(AUDIT).to_dict()
    data["outcomes"][0]["auc"]["low"] = None
    assert math.isnan(read_report(Report(data)).attacks[0].auc.low)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("outcomes", 0, "advantage", "low"), "0.1"),
        (("outcomes", 0, "advantage"), None),
        (("outcomes", 0, "auc", "high"), True),
        (("outcomes", 0), 3),
        (("outcomes",), None),
        (("target", "members"), "many"),
        (("verdict",), []),
        (("disclosures", 0), {}),
        (("disclosures", 0, "recovered"), -1),
        (("outcomes", 0, "advantage", "low"), -9e9),
        (("outcomes", 0, "advantage", "high"), 1.1),
        (("outcomes", 0, "auc", "value"), -0.1),
        (("outcomes", 0, "auc"), {"value": 0.5, "low": 0.6, "high": 0.4}),
        (("outcomes", 0, "rates", "members"), -3),
        (("outcomes", 0, "rates", "tpr"), 2),
        (("outcomes", 0, "p_value"), -1),
        (("outcomes", 0, "tpr_at_fpr", 0, "high"), 7),
        (("target", "members"), -5),
        (("target", "members"), 10**400),
        (("target", "nonmembers"), 0.5),
    ],
)
def test_what_does_not_follow_the_schema_is_one_sentence(place, value, tmp_path) -> None:
    data = copy.deepcopy(report_of(AUDIT).to_dict())
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(InputError, match="does not follow its schema") as caught:
        read_report(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('"limit": NaN', "NaN is no number of JSON"),
        ('"limit": -Infinity', "-Infinity is no number of JSON"),
        ('"limit": 0.1, "limit": 0.9', "it has 'limit' twice"),
    ],
)
def test_what_is_no_json_is_one_sentence(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(report_of(AUDIT).to_json().replace('"limit": 0.1', text), "utf-8")
    with pytest.raises(InputError, match=rf"is not JSON \({why}\); give a report\.json"):
        read_report(path)


def test_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="A report is 'dict'; give a Report"):
        read_report({})  # type: ignore[arg-type]
