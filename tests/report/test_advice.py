from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from leakscope.report import RecordTable, Report, advice

MakeReport = Callable[[str], dict[str, Any]]


def test_records_csv_is_named_only_where_it_is_written_beside_the_page(
    leak: dict[str, Any], table: RecordTable, tmp_path: Path
) -> None:
    whole = Report(leak, table)
    beside = (whole.save(tmp_path / "a") / "report.html").read_text("utf-8")
    assert "The file records.csv of this run says" in beside
    alone = (Report(leak).save(tmp_path / "b") / "report.html").read_text("utf-8")
    shared = (whole.redacted().save(tmp_path / "c") / "report.html").read_text("utf-8")
    again = (Report.load(tmp_path / "a").save(tmp_path / "d") / "report.html").read_text("utf-8")
    for page in (alone, shared, again, whole.to_html(), whole.redacted().to_html()):
        assert "Audit the changed model again." in page
        assert "records.csv" not in page


def test_one_attack_is_not_many(make_report: MakeReport) -> None:
    report = make_report("no_leak_found")
    assert "None of the 6 attacks tried" in advice.meaning(report)
    report["outcomes"] = report["outcomes"][:1]
    assert "None of the one attack tried" not in advice.meaning(report)
    assert "The one attack tried found no leak" in advice.meaning(report)


def test_shadow_models_are_advised_only_where_none_were_used(make_report: MakeReport) -> None:
    report = make_report("no_leak_found")
    assert any("stronger than those tried" in step for step in advice.next_steps(report))
    report["outcomes"][0]["models"] = 64
    assert not any("stronger than those tried" in step for step in advice.next_steps(report))


def test_explanations_that_show_records_are_advised_against(
    make_report: MakeReport, disclosures: list[dict[str, Any]]
) -> None:
    for level in ("leaks", "no_leak_found", "undecided"):
        report = make_report(level)
        assert not any("training records" in step for step in advice.next_steps(report))
        report["disclosures"] = disclosures
        steps = advice.next_steps(report)
        assert sum("by something else than training records" in step for step in steps) == 1


def test_what_no_number_of_records_decides_is_not_sent_to_find_more(
    make_report: MakeReport,
) -> None:
    report = make_report("undecided")
    report["verdict"]["records_to_decide"] = None
    first = advice.next_steps(report)[0]
    assert "More records would not decide it" in first
    assert "swapped" in first


def test_the_adversary_is_said_to_know_what_it_knows(leak: dict[str, Any]) -> None:
    by_name = {one["attack"]: one for one in leak["outcomes"]}
    opening = advice.opening(leak, by_name["loss"])
    assert (
        "holds a record with its true label, and sees the loss on each record and knows the "
        "average training loss." in opening
    )
    # The attack that finds most members at a low rate is named as well.
    assert opening.endswith("sees class probabilities and knows half of the members.")
    assert advice.opening(leak, by_name["gradient-boosting"]).count("Its attacker") == 1


def test_labels_only_is_not_advised_where_labels_leak(leak: dict[str, Any]) -> None:
    steps = " ".join(advice.next_steps(leak))
    assert "Returning labels without probabilities is not enough: the label-gap attack" in steps
    for outcome in leak["outcomes"]:
        if outcome["channel"] == "label":
            outcome["adjusted_p"] = 0.4
            for test in outcome["tails"]:
                test["adjusted_p"] = 1.0
    assert "Returning less, such as labels" in " ".join(advice.next_steps(leak))
    leak["outcomes"][0]["channel"] = "gradient-summary"
    steps = " ".join(advice.next_steps(leak))
    assert "Withhold or coarsen the explanations" in steps
    assert "gradient-summary" in steps
    assert "Returning" not in steps


def test_a_leak_within_the_limits_gets_calmer_advice(leak: dict[str, Any]) -> None:
    assert "protect the model as you protect" in advice.next_steps(leak)[0]
    leak["verdict"]["within_limit"] = True
    assert advice.next_steps(leak)[0].startswith("Decide whether a leak of this size")
    assert "small" in advice.meaning(leak)


def test_a_leak_of_a_few_is_not_described_as_one_of_everyone(leak: dict[str, Any]) -> None:
    for outcome in leak["outcomes"]:
        outcome["adjusted_p"] = 1.0
    assert "identify a few of them" in advice.meaning(leak)
    assert any("singled out" in step for step in advice.next_steps(leak))


def test_a_control_is_explained_where_it_is_known() -> None:
    one = {"name": "overlap", "passed": None, "fatal": True, "detail": "d"}
    told = advice.control(one)
    assert told["state"] == "not run"
    assert told["checks"].startswith("Is a record on both sides?")
    assert advice.control(one | {"name": "new", "passed": True}) == {
        "name": "new",
        "checks": "",
        "state": "passed",
        "fatal": True,
        "detail": "d",
    }


def test_records_that_are_needed_are_told_with_their_persons(make_report: MakeReport) -> None:
    report = make_report("undecided")
    report["verdict"]["records_to_decide"] = 1000
    report["target"] |= {"members": 240, "nonmembers": 240, "unit": "patient"}
    report["target"]["units"] = {"members": 60, "nonmembers": 48}
    steps = " ".join(advice.next_steps(report))
    assert "Audit again with about 1,000 records of 250 persons on each side" in steps
