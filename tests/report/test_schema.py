from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from leakscope.report import Report, load_schema


def check(data: Any) -> None:
    jsonschema.Draft202012Validator(load_schema()).validate(data)


def properties(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property described anywhere in the schema, with its name."""
    if isinstance(schema, dict):
        for name, one in schema.get("properties", {}).items():
            if "description" in one or "const" not in one or name == "schema_version":
                yield name, one
        for key, part in schema.items():
            if key not in ("if", "then"):
                yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


def test_the_schema_is_one_itself() -> None:
    jsonschema.Draft202012Validator.check_schema(load_schema())


def test_every_key_is_documented_by_a_sentence() -> None:
    found = list(properties(load_schema()))
    assert len(found) > 90
    for name, one in found:
        assert one.get("description", "").endswith("."), name


# Of reports that were never redacted, and of models that are not behind HTTP, nothing is said;
# fingerprints are absent in reports of earlier versions.
OPTIONAL: list[set[str]] = [
    set(),
    {"redacted", "records_sha256"},
    {"preparation", "fingerprint", "class_sizes"},
    {"underestimate"},  # older reports lack it
    {"queries", "requests", "retries", "seconds_waiting"},
]


def test_every_object_lists_its_keys_and_requires_them() -> None:
    objects = [load_schema(), *load_schema()["$defs"].values()]
    for one in objects:
        if "properties" in one:
            assert one["additionalProperties"] is False
            assert set(one["required"]) <= set(one["properties"])
            assert set(one["properties"]) - set(one["required"]) in OPTIONAL


def test_reports_of_every_level_obey(report: dict[str, Any]) -> None:
    check(report)


def test_a_regression_obeys(regression: dict[str, Any]) -> None:
    check(regression)


def test_a_hostile_report_obeys(hostile: tuple[str, dict[str, Any]]) -> None:
    check(Report(hostile[1]).to_dict())


def test_what_is_saved_obeys(leak: dict[str, Any], tmp_path: Path) -> None:
    leak["outcomes"][0]["auc"]["high"] = float("nan")
    Report(leak).save(tmp_path)
    check(json.loads((tmp_path / "report.json").read_text("utf-8")))


def test_leakage_obeys(leak: dict[str, Any], leakage: list[dict[str, Any]]) -> None:
    leak["leakage"] = leakage
    check(leak)
    leak["leakage"][0]["best_attack"] = None
    check(leak)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("extra", 1),
        ("bound", 1.2),
        ("bound_low", -0.1),
        ("null_bound", "none"),
        ("null.p_value", 2),
        ("null.extra", 0),
        ("null.permutations", 0),
        ("groups.0.n", 0),
        ("groups.0.mean", 0.1),
        ("best_attack", "lira"),
        ("best_attack.advantage.value", 2),
        ("models", 0),
        ("note", None),
    ],
)
def test_leakage_that_breaks_the_contract_is_refused(
    leak: dict[str, Any], leakage: list[dict[str, Any]], path: str, value: Any
) -> None:
    leak["leakage"] = leakage
    with pytest.raises(jsonschema.ValidationError):
        check(changed(leak, f"leakage.0.{path}", value))


def test_additions_obey(leak: dict[str, Any], additions: list[dict[str, Any]]) -> None:
    leak["additions"] = additions
    check(leak)


@pytest.mark.parametrize(
    ("path", "value"),
    [("extra", 1), ("attack", None), ("attacks", 0), ("increase.low", None), ("beside", 3)],
)
def test_additions_that_break_the_contract_are_refused(
    leak: dict[str, Any], additions: list[dict[str, Any]], path: str, value: Any
) -> None:
    leak["additions"] = additions
    with pytest.raises(jsonschema.ValidationError):
        check(changed(leak, f"additions.0.{path}", value))


def test_disclosures_obey(leak: dict[str, Any], disclosures: list[dict[str, Any]]) -> None:
    leak["disclosures"] = disclosures
    check(leak)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("extra", 1),
        ("k", 0),
        ("bound", 0.5),
        ("recovered", None),
        ("queries", -1),
        ("shown", "all"),
        ("stopped", None),
        ("groups.0.n", 0),
        ("groups.0.extra", 1),
        ("groups.0.share.value", 1.2),
        ("curve.shown", [0.5]),
        ("curve.queries", [0] * 51),
        ("details", []),
    ],
)
def test_disclosures_that_break_the_contract_are_refused(
    leak: dict[str, Any], disclosures: list[dict[str, Any]], path: str, value: Any
) -> None:
    leak["disclosures"] = disclosures
    with pytest.raises(jsonschema.ValidationError):
        check(changed(leak, f"disclosures.0.{path}", value))


@pytest.mark.parametrize(
    "redacted", [True, {}, {"fewest": 1, "withheld": []}, {"fewest": 10, "withheld": ["sex"]}]
)
def test_a_redaction_that_breaks_the_contract_is_refused(
    leak: dict[str, Any], redacted: Any
) -> None:
    check(leak | {"redacted": None})
    with pytest.raises(jsonschema.ValidationError):
        check(leak | {"redacted": redacted})


def changed(report: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *way, last = path.split(".")
    part: Any = report
    for step in way:
        part = part[int(step)] if step.isdigit() else part[step]
    part[last] = value
    return report


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", 1),
        ("seed", -1),
        ("surprise", 1),
        ("target.task", "clustering"),
        ("target.prior", 1.5),
        ("target.extra", 1),
        ("outcomes.0.auc.value", 1.2),
        ("outcomes.0.advantage.low", -1.2),
        ("outcomes.0.auc", None),
        ("outcomes.0.tpr_at_fpr.0.resolved", None),
        ("outcomes.0.adjusted_p", -0.1),
        ("outcomes.0.curve.fpr", [0.0] * 513),
        ("outcomes.0.groups.0.excess.value", 2.5),
        ("controls.0.passed", "yes"),
        ("verdict.level", "fine"),
        ("verdict.attack", None),
        ("not_run.0.reason", None),
    ],
)
def test_what_breaks_the_contract_is_refused(leak: dict[str, Any], path: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(changed(leak, path, value))


@pytest.mark.parametrize("key", list(load_schema()["required"]))
def test_no_key_may_be_left_out(leak: dict[str, Any], key: str) -> None:
    del leak[key]
    with pytest.raises(jsonschema.ValidationError):
        check(leak)


def test_the_verdict_may_rest_on_no_attack_unless_it_says_leaks(leak: dict[str, Any]) -> None:
    leak["verdict"] |= {"level": "undecided", "attack": None}
    check(leak)
