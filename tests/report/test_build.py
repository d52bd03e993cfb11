from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.report import RecordTable, Report

FILES = {"records.csv", "report.html", "report.json"}


@pytest.fixture
def quick_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without figures, where the test is about files and not about what is on the page."""
    monkeypatch.setattr(Report, "to_html", lambda self: f"<p>{self.data['seed']}</p>")


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_saved_report_comes_back_as_it_was(
    leak: dict[str, Any], table: RecordTable, tmp_path: Path
) -> None:
    saved = Report(leak, table)
    folder = saved.save(tmp_path / "new" / "run")
    assert folder == tmp_path / "new" / "run"
    assert names(folder) == FILES
    assert Report.load(folder) == saved
    assert Report.load(folder / "report.json").to_dict() == leak
    page = (folder / "report.html").read_text("utf-8")
    sentence = " The file records.csv of this run says which records the attacks find."
    assert page.replace(sentence, "") == saved.to_html()
    assert (sentence in page) is (leak["verdict"]["level"] == "leaks")
    assert (folder / "records.csv").read_text("utf-8") == table.to_csv()


@pytest.mark.usefixtures("quick_page")
def test_without_records_there_is_no_table_of_them(leak: dict[str, Any], tmp_path: Path) -> None:
    assert names(Report(leak).save(str(tmp_path))) == FILES - {"records.csv"}


def test_the_verdict_and_the_outcomes_are_at_hand(leak: dict[str, Any]) -> None:
    report = Report(leak)
    assert report.verdict.level == "leaks"
    assert report.verdict.attack == "gradient-boosting"
    assert report.verdict.limit == 0.1
    assert report.verdict.records_to_decide is None
    assert report.verdict.headline == leak["verdict"]["headline"]
    assert report.verdict.reason == leak["verdict"]["reason"]
    with pytest.raises(FrozenInstanceError):
        report.verdict.level = "fine"  # type: ignore[misc]
    assert [one["attack"] for one in report.outcomes] == [one["attack"] for one in leak["outcomes"]]


def test_what_is_handed_out_cannot_change_the_report(leak: dict[str, Any]) -> None:
    report = Report(leak)
    before = report.to_json()
    leak["seed"] = 99
    report.to_dict()["verdict"]["level"] = "fine"
    report.outcomes[0]["attack"] = "other"
    assert report.to_json() == before


def test_numbers_of_numpy_become_plain_and_what_is_not_finite_becomes_null() -> None:
    data: dict[Any, Any] = {
        "nan": float("nan"),
        "inf": [np.inf, -np.inf, np.float64(np.nan), np.float32(0.5)],
        "array": np.array([[1, 2], [3, 4]]),
        "bool": np.bool_(True),
        "text": np.str_("word"),
        "tuple": (1, None, True),
        3: np.int64(3),
    }
    assert json.loads(Report(data).to_json()) == {
        "nan": None,
        "inf": [None, None, None, 0.5],
        "array": [[1, 2], [3, 4]],
        "bool": True,
        "text": "word",
        "tuple": [1, None, True],
        "3": 3,
    }


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="not <object"):
        Report({"x": object()})


def test_json_is_the_same_with_arrays_on_one_line(leak: dict[str, Any]) -> None:
    leak["command"] = "[\n    1,\n    2\n  ]"
    text = Report(leak).to_json()
    assert json.loads(text) == leak
    assert '"fpr": [0.0, ' in text
    assert text.count("\n") < 3500
    assert text.endswith("}\n")


@pytest.mark.usefixtures("quick_page")
def test_a_text_no_file_can_hold_is_made_fit_for_one(leak: dict[str, Any], tmp_path: Path) -> None:
    leak["target"]["model"] = "half \ud800 a pair"
    assert Report.load(Report(leak).save(tmp_path)).to_dict()["target"]["model"] == "half ? a pair"


@pytest.mark.usefixtures("quick_page")
@pytest.mark.parametrize("broken", sorted(FILES))
def test_a_failure_while_writing_leaves_what_was_there(
    leak: dict[str, Any],
    table: RecordTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
) -> None:
    Report(leak, table).save(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    leak["seed"] = 1
    order = ["records.csv", "report.html", "report.json"]
    written: list[int] = []
    real = os.fsync

    def full_disk(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > order.index(broken):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match=r"cannot be saved in .* \(No space left on device\)"):
        Report(leak, table).save(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == before
    assert names(tmp_path) == FILES


def test_a_failure_while_drawing_writes_nothing(
    leak: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Report) -> str:
        raise RuntimeError("no page")

    monkeypatch.setattr(Report, "to_html", fail)
    with pytest.raises(RuntimeError, match="no page"):
        Report(leak).save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("quick_page")
def test_a_file_in_the_way_is_one_sentence(leak: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "run"):
        with pytest.raises(InputError, match="a file is in the way"):
            Report(leak).save(folder)
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.usefixtures("quick_page")
def test_a_folder_in_the_place_of_a_file_is_one_sentence(
    leak: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(InputError, match="cannot be saved in"):
        Report(leak).save(tmp_path)
    assert not [one for one in names(tmp_path) if one.endswith(".tmp")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"cannot be read \(No such file or directory\)"),
        ("{", "is not JSON"),
        ("\x80", "is not JSON"),
        ("[]", r"not a report of schema version 2 \(schema_version is None\)"),
        ('{"schema_version": 1}', "schema_version is 1"),
        ('{"schema_version": 2}', "not a report"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text, "latin-1")
    with pytest.raises(InputError, match=message):
        Report.load(tmp_path)


class Frame(HTMLParser):
    """Collects the elements of a notebook's cell."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.slow
def test_a_notebook_gets_the_page_in_a_frame_of_its_own(leak: dict[str, Any]) -> None:
    leak["target"]["model"] = '"><script>alert(1)</script>'
    report = Report(leak)
    frame = Frame()
    frame.feed(report._repr_html_())
    ((tag, attributes),) = frame.tags
    assert tag == "iframe"
    assert attributes["sandbox"] == ""
    assert attributes["srcdoc"] == report.to_html()


def test_the_short_text_has_the_verdict_and_the_strongest_attack(report: dict[str, Any]) -> None:
    text = repr(Report(report))
    assert report["verdict"]["headline"] in text
    if report["outcomes"]:
        advantage = report["outcomes"][0]["advantage"]["value"]
        assert f"gradient-boosting: advantage {advantage:.3f} (" in text
        assert "attacks tried: 6" in text
    else:
        assert text.count("\n") == 1


def test_heavy_libraries_wait_until_a_page_is_made() -> None:
    code = (
        "import sys; from leakscope.report import RecordTable, Report; Report({}).to_json();"
        "import leakscope.report.terminal, leakscope.report.html;"
        "print([m for m in ('matplotlib', 'jinja2', 'pandas', 'sklearn', 'rich')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_folder_in_the_place_of_a_file_is_refused_before_the_work(tmp_path: Path) -> None:
    from leakscope.report.folders import check_folder

    check_folder(tmp_path)
    (tmp_path / "report.json").mkdir()
    with pytest.raises(InputError, match=r"report\.json is a folder there"):
        check_folder(tmp_path)
