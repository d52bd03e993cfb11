"""Writing an experiment: ID.json, ID.csv and, where there is a picture, ID.svg, or none of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Experiment, Row
from leakscope.report.folders import check_folder, write_together

SUFFIXES = (".json", ".csv", ".svg")


def check_place(folder: str | Path, name: str) -> None:
    """Refuse, before the long work, a folder in which this experiment could not be saved."""
    check_folder(folder, [f"{name}{suffix}" for suffix in SUFFIXES])


def save(experiment: Experiment, folder: str | Path) -> list[Path]:
    """Write the files of an experiment; where they are.

    All are made before the first is written, and all are written before the first takes its
    place: a failure leaves what was there.
    """
    name = experiment.experiment
    texts = {
        f"{name}.json": as_json(experiment),
        f"{name}.csv": as_csv(experiment.rows),
    }
    if experiment.draw is not None:
        texts[f"{name}.svg"] = as_svg(experiment.draw(), f"{name}, {experiment.paper}")
    check_place(folder, name)
    write_together(Path(folder), texts)
    return [Path(folder) / file for file in texts]


def as_json(experiment: Experiment) -> str:
    """The experiment in the keys that others read, without NaN and Infinity."""
    return json.dumps(experiment.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as a table: a column for every key, empty where a row has nothing."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
