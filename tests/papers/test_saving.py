from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from leakscope.errors import InputError
from leakscope.papers.experiment import Experiment
from leakscope.papers.saving import check_place, save


def toy(**changed: Any) -> Experiment:
    return Experiment(
        **{
            "experiment": "toy",
            "paper": "Nobody 2020, figure 1",
            "setup": {"seed": 0},
            "rows": [{"n": 1, "rho": 0.5}, {"n": 2, "more": "ρ, with a comma"}],
            "paper_rows": [],
            "notes": ["None."],
            "draw": Figure,
        }
        | changed
    )


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_three_files_hold_the_experiment(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    paths = save(toy(), folder)
    assert [path.name for path in paths] == ["toy.json", "toy.csv", "toy.svg"]
    assert names_in(folder) == {"toy.json", "toy.csv", "toy.svg"}
    assert json.loads(paths[0].read_text("utf-8")) == toy().to_dict()
    with paths[1].open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"n": "1", "rho": "0.5", "more": ""},
            {"n": "2", "rho": "", "more": "ρ, with a comma"},
        ]
    assert "toy, Nobody 2020, figure 1" in paths[2].read_text("utf-8")


def test_a_table_has_no_picture(tmp_path: Path) -> None:
    assert [path.name for path in save(toy(draw=None), tmp_path)] == ["toy.json", "toy.csv"]
    assert names_in(tmp_path) == {"toy.json", "toy.csv"}


def broken() -> Figure:
    raise RuntimeError("no picture")


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"rows": [{"rho": math.nan}]}, ValueError), ({"draw": broken}, RuntimeError)],
)
def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, changed: dict[str, Any], error: type[Exception]
) -> None:
    before = {path: path.read_bytes() for path in save(toy(), tmp_path)}
    with pytest.raises(error):
        save(toy(setup={"seed": 1}, **changed), tmp_path)
    assert {path: path.read_bytes() for path in before} == before
    assert names_in(tmp_path) == {"toy.json", "toy.csv", "toy.svg"}


def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "toy.svg").mkdir()
    for refused in (lambda: save(toy(), tmp_path), lambda: check_place(tmp_path, "toy")):
        with pytest.raises(InputError, match=r"\(toy\.svg is a folder there\)"):
            refused()
    assert names_in(tmp_path) == {"toy.svg"}


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="a file is in the way"):
        check_place(tmp_path / "taken", "toy")
    check_place(tmp_path / "new", "toy")
    assert names_in(tmp_path) == {"taken"}
