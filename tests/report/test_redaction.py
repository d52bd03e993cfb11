from __future__ import annotations

import copy
import csv
import io
import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from leakscope.errors import InputError
from leakscope.report import RecordTable, Report, load_schema
from leakscope.report.redaction import (
    FEWEST,
    _without_values,
    redact,
    refuse_telling_files,
    without_paths,
)
from leakscope.report.terminal import print_summary


def groups(sizes: dict[str, tuple[int, int]], column: str = "race") -> list[dict[str, Any]]:
    nothing = {"value": 0.1, "low": 0.0, "high": 0.2}
    return [
        {
            "group": column,
            "value": value,
            "n": members + nonmembers,
            "members": members,
            "nonmembers": nonmembers,
            "advantage": dict(nothing),
            "adjusted_p": 0.5,
            "excess": dict(nothing),
            "excess_adjusted_p": 0.5,
            "tails": [],
        }
        for value, (members, nonmembers) in sizes.items()
    ]


def shown(report: dict[str, Any], place: str = "outcomes") -> set[str]:
    return {one["value"] for part in report[place] for one in part["groups"]}


@pytest.fixture
def small(leak: dict[str, Any]) -> dict[str, Any]:
    """One race of four members, beside three large ones."""
    races = {"White": (900, 900), "Black": (90, 80), "Other": (30, 25), "Inuit": (4, 30)}
    for one in leak["outcomes"]:
        sexes = groups({"Female": (500, 500), "Male": (500, 500)}, "sex")
        one["groups"] = [*sexes, *groups(races)]
    return leak


def test_a_small_group_and_the_next_smallest_are_withheld(small: dict[str, Any]) -> None:
    found = redact(small)
    assert shown(found) == {"Female", "Male", "White", "Black"}
    assert found["redacted"] == {"fewest": 10, "withheld": [{"group": "race", "values": 2}]}
    assert "Inuit" not in json.dumps(found)
    jsonschema.Draft202012Validator(load_schema()).validate(found)


def test_what_is_large_enough_stays(small: dict[str, Any]) -> None:
    found = redact(small, 4)
    assert shown(found) == shown(small)
    assert found["redacted"] == {"fewest": 4, "withheld": []}


@given(
    st.dictionaries(
        st.text(max_size=3), st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8
    ),
    st.integers(2, 20),
)
def test_nothing_small_is_shown_nor_left_over_by_subtraction(
    sizes: dict[str, tuple[int, int]], fewest: int
) -> None:
    report = _minimal(groups(sizes))
    seen = shown(redact(report, fewest))
    hidden = [sizes[value] for value in sizes if value not in seen]
    assert all(min(sizes[value]) >= fewest for value in seen)
    if hidden and seen:
        assert len(hidden) > 1
        assert min(sum(side) for side in zip(*hidden, strict=True)) >= fewest
    # No more than that takes: without the largest that did not have to go, too little is hidden.
    spare = [one for one in hidden if min(one) >= fewest]
    if spare:
        hidden.remove(max(spare, key=lambda one: (min(one), sum(one))))
        covered = len(hidden) > 1 and min(sum(side) for side in zip(*hidden, strict=True)) >= fewest
        assert hidden
        assert not covered


def _minimal(found: list[dict[str, Any]]) -> dict[str, Any]:
    outcome = {
        "attack": "loss",
        "channel": "loss",
        "threshold": {"value": 1.0, "source": ""},
        "histogram": {},
        "curve": {"fpr": [], "tpr": []},
        "rates": {"members": 100, "nonmembers": 100},
        "groups": found,
    }
    return {
        "command": "leakscope audit",
        "target": {"model": "", "dataset": None, "members": 100, "nonmembers": 100},
        "controls": [],
        "outcomes": [outcome],
        "disclosures": [],
        "leakage": [],
        "not_run": [],
        "verdict": {"headline": "", "reason": ""},
    }


def test_a_value_is_withheld_everywhere_where_it_is_small_anywhere(
    small: dict[str, Any], disclosures: list[dict[str, Any]], leakage: list[dict[str, Any]]
) -> None:
    small["disclosures"], small["leakage"] = disclosures, leakage
    for one in disclosures[0]["groups"]:
        if one["value"] == "Female":
            one["n"] = 9
    found = redact(small)
    assert shown(found, "disclosures") == {"everyone"}
    assert shown(found, "leakage") == set()
    assert {"group": "sex", "values": 2} in found["redacted"]["withheld"]
    assert Report(found).to_html()


def test_scores_and_steps_of_few_records_go_and_figures_stay(leak: dict[str, Any]) -> None:
    before = copy.deepcopy(leak)
    found = redact(leak)
    assert leak == before
    for old, new in zip(leak["outcomes"], found["outcomes"], strict=True):
        assert new["threshold"]["value"] is None
        assert new["histogram"] == {"edges": [], "members": [], "nonmembers": []}
        for key in ("attack", "auc", "advantage", "accuracy", "tpr_at_fpr", "ppv", "adjusted_p"):
            assert new[key] == old[key]
        points = list(zip(new["curve"]["fpr"], new["curve"]["tpr"], strict=True))
        ends = [(old["curve"]["fpr"][at], old["curve"]["tpr"][at]) for at in (0, -1)]
        assert [points[0], points[-1]] == ends
        assert len(points) < len(old["curve"]["fpr"])
        steps = [
            (b[0] - a[0]) * old["rates"]["nonmembers"] + (b[1] - a[1]) * old["rates"]["members"]
            for a, b in pairwise(points)
        ]
        assert min(steps) >= FEWEST
    for key in ("verdict", "cost", "seed", "created"):
        assert found[key] == leak[key]


def test_the_last_step_of_a_curve_is_no_smaller_than_others(leak: dict[str, Any]) -> None:
    leak["target"] |= {"members": 100, "nonmembers": 100}
    leak["outcomes"][0]["rates"] |= {"members": 100, "nonmembers": 100}
    rates = [0.0, 0.2, 0.4, 0.96, 1.0]  # the last step is of four members and four others
    leak["outcomes"][0]["curve"] = {"fpr": rates, "tpr": [*rates]}
    assert redact(leak)["outcomes"][0]["curve"]["fpr"] == [0.0, 0.2, 0.4, 1.0]
    # What counts are the records that the attack was judged on, where those are fewer.
    leak["outcomes"][0]["rates"] |= {"members": 20, "nonmembers": 20}
    assert redact(leak)["outcomes"][0]["curve"]["fpr"] == [0.0, 0.4, 1.0]
    leak["target"] |= {"members": 2, "nonmembers": 3}
    assert redact(leak)["outcomes"][0]["curve"]["fpr"] == [0.0, 1.0]


def test_values_places_and_paths_go_from_what_is_said(leak: dict[str, Any]) -> None:
    leak["target"]["dataset"] = "/home/ann/secret trial/cohort.csv"
    leak["not_run"] = [
        {
            "attack": "robustness",
            "reason": "Column 'age' of the members in row 17 holds 'HIV+', says \"it's so\" in "
            "/home/ann/x.csv; the attack's channel 'loss' and record 5 of C:\\data\\y.csv.",
        }
    ]
    leak["controls"][0]["detail"] = "The row 3 holds 'Smith'."
    leak["target"]["model"] = "the model at https://ann.example:8000/predict"
    leak["verdict"]["reason"] = "It is at http://ann.example/x, and that is all."
    leak["target"]["preparation"] = ["The column 'sex' is like 'intersex' in row 9."]
    found = redact(leak)
    assert found["target"]["dataset"] == "cohort.csv"
    assert found["target"]["model"] == "the model at …"
    assert found["verdict"]["reason"] == "It is at …, and that is all."
    assert found["not_run"][0]["reason"] == (
        "Column 'age' of the members in row … holds '…', says \"…\" in x.csv; the attack's channel "
        "'loss' and record … of y.csv."
    )
    assert found["controls"][0]["detail"] == "The row … holds '…'."
    assert found["target"]["preparation"] == ["The column 'sex' is like '…' in row …."]


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (
            "leakscope audit --members '/home/ann/my data/a.csv' --model=../m.skops --out run/ "
            "--label y",
            "leakscope audit --members a.csv --model=m.skops --out run --label y",
        ),
        (
            "leakscope audit --dataset-options file=/x/y.npz,n=3 --address tcp://node7:8786",
            "leakscope audit --dataset-options file=y.npz,n=3 --address …",
        ),
        ("leakscope audit --members C:\\a\\b.csv", "leakscope audit --members C:ab.csv"),
        ("leakscope audit --label 'it is' /", "leakscope audit --label 'it is' /"),
        ("leakscope audit '/a/b.csv", "leakscope audit b.csv"),
        (
            "leakscope.audit(model, members, nonmembers, recipe='/a/b', label='y', seed=0)",
            "leakscope.audit(model, members, nonmembers, recipe='b', label='y', seed=0)",
        ),
    ],
)
def test_a_command_keeps_base_names_alone(command: str, left: str) -> None:
    assert without_paths(command) == left


@pytest.mark.parametrize(
    "folder",
    [
        "a,b",
        "a=b",
        "a=b,c=d",
        "a b",
        "it's",
        'say "x"',
        "ä/ö",
        "a;b",
        "--x=y",
        "#1?",
        "$(x)",
        "a\nb",
    ],
)
@pytest.mark.parametrize("option", ["--members {}", "--model={}", "--dataset-options {}", "{}"])
def test_no_part_of_a_folder_survives(folder: str, option: str) -> None:
    parts = ["hush1", *folder.split("/"), "hush2"]
    for start in ("/", "", "../", "~/"):
        path = start + "/".join(f"hush{part}" for part in parts) + "/file,1=2.csv"
        if "-options" in option:
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(["n=3", f"file={path}"])
            path = line.getvalue()
        words = [word.format(path) for word in option.split()]
        left = without_paths(shlex.join(["leakscope", "audit", *words]))
        assert "hush" not in left
        assert "file,1=2.csv" in left
    path = f"/{'/'.join(parts)}/file.csv"
    said = f"The file {path!r} cannot be read; see /hush,a=b/hush c/x.csv."
    assert "hush" not in _without_values(said, set())


def test_a_label_of_two_people_is_withheld_with_the_next_rarest(leak: dict[str, Any]) -> None:
    leak["target"]["classes"] = ["flu", "cold", "kuru", "rabies"]
    leak["target"]["class_sizes"] = {"members": [900, 40, 2, 60], "nonmembers": [900, 30, 50, 60]}
    found = redact(leak)
    assert found["target"]["classes"] == ["flu", "…", "…", "rabies"]
    assert found["target"]["class_sizes"]["members"] == [900, None, None, 60]
    assert found["redacted"]["withheld"] == [{"group": "classes", "values": 2}]
    jsonschema.Draft202012Validator(load_schema()).validate(found)
    assert redact(found) == found
    assert redact(found, 100)["target"]["classes"] == ["…"] * 4
    for text in (Report(found).to_html(), json.dumps(found)):
        assert "kuru" not in text
        assert "cold" not in text
    assert "classification into 4 classes (flu, …, …, rabies)" in Report(found).to_html()


def test_classes_of_unknown_size_are_withheld(leak: dict[str, Any]) -> None:
    del leak["target"]["class_sizes"]
    assert redact(leak)["target"]["classes"] == ["…", "…"]
    leak["target"]["classes"] = None
    assert redact(leak)["target"]["classes"] is None


@pytest.mark.parametrize("classes", ["['flu', \"o'kuru]\", 'x']", "[0, 1, 99]", "[]"])
def test_classes_go_from_a_call_in_python(leak: dict[str, Any], classes: str) -> None:
    command = f"leakscope.audit(model, members, nonmembers, classes={classes}, seed=0)"
    assert without_paths(command) == (
        "leakscope.audit(model, members, nonmembers, classes=…, seed=0)"
    )


@pytest.mark.parametrize("fewest", [1, 0, -3, 2.5, True, "10", None])
def test_a_smallest_group_that_makes_no_sense_is_refused(leak: dict[str, Any], fewest: Any) -> None:
    with pytest.raises(InputError, match=r"smallest group to be shown is .*; choose a whole numb"):
        redact(leak, fewest)


def test_what_could_test_the_last_record_of_a_side_goes(leak: dict[str, Any]) -> None:
    assert "fingerprint" not in redact(leak)["target"]  # of an earlier version
    leak["target"]["fingerprint"] = {"columns": "c", "members": "m", "nonmembers": "n"}
    found = redact(leak)
    assert found["target"]["fingerprint"] == {"columns": "c", "members": None, "nonmembers": None}
    jsonschema.validate(found, load_schema())


def test_redacting_twice_changes_nothing_and_more_withholds_more(small: dict[str, Any]) -> None:
    once = redact(small)
    assert redact(once) == once
    more = redact(once, 85)
    assert shown(more) == {"Female", "Male"}
    assert more["redacted"] == {"fewest": 85, "withheld": [{"group": "race", "values": 4}]}


@pytest.mark.slow
def test_the_page_and_the_terminal_say_that_they_are_redacted(
    small: dict[str, Any], table: RecordTable
) -> None:
    whole, part = Report(small, table), Report(small, table).redacted()
    assert part.records is None
    said = "This report is redacted so that it can be passed on"
    assert said not in whole.to_html()
    page = part.to_html()
    assert said in page
    assert "fewer than 10 members or non-members are withheld" in page
    assert "Withheld: 2 of the values of race." in page
    assert "Folders are left out of paths." in page
    assert "Inuit" not in page
    assert "Inuit" in whole.to_html()
    for report, there in ((whole, False), (part, True)):
        console = Console(record=True, width=200, file=io.StringIO())
        print_summary(report.to_dict(), console)
        assert ("it tells nothing of single records" in console.export_text()) is there


def test_where_every_value_is_withheld_nobody_says_that_none_was_named(
    leak: dict[str, Any],
) -> None:
    for one in leak["outcomes"]:
        one["groups"] = groups({"a": (3, 3), "b": (500, 500)})
    page = Report(leak).redacted().to_html()
    assert "Withheld: 2 of the values of race." in page
    assert "No groups were named" not in page


def test_a_redacted_report_is_saved_loaded_and_kept_apart(
    small: dict[str, Any], table: RecordTable, tmp_path: Path
) -> None:
    whole = Report(small, table)
    part = whole.redacted()
    part.save(tmp_path / "shared")
    assert {one.name for one in (tmp_path / "shared").iterdir()} == {"report.html", "report.json"}
    assert Report.load(tmp_path / "shared") == part
    whole.save(tmp_path / "own")
    with pytest.raises(InputError, match=r"holds records\.csv of an audit that was not redacted"):
        part.save(tmp_path / "own")
    assert Report.load(tmp_path / "own") == whole
    (tmp_path / "own" / "records.csv").unlink()
    (tmp_path / "own" / "trials").mkdir()
    with pytest.raises(InputError, match=r"holds trials of an audit that was not redacted"):
        refuse_telling_files(tmp_path / "own")


def test_reports_of_every_level_can_be_redacted(report: dict[str, Any]) -> None:
    found = Report(report).redacted()
    jsonschema.Draft202012Validator(load_schema()).validate(found.to_dict())
    assert found.verdict == Report(report).verdict


def test_a_hostile_report_can_be_redacted(mixed: dict[str, Any]) -> None:
    found = Report(mixed).redacted()
    jsonschema.Draft202012Validator(load_schema()).validate(found.to_dict())
    assert "<script>" not in found.to_html()
