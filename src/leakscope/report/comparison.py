"""Comparison: what defenses buy, side by side, as a plain dictionary, and its files."""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.errors import InputError
from leakscope.report.folders import write_together
from leakscope.report.json_text import strict_json
from leakscope.report.records import cell
from leakscope.report.words import framed, number, span

SCHEMA_VERSION = 1
FILES = ("compare.csv", "compare.html", "compare.json")
REQUIRED = {"schema_version", "setup", "rows", "summary", "frontier", "advice"}

# The columns of compare.csv that are taken out of a row's leakage, and what has no column there.
GAIN = ("js", "gain")
NESTED = ("leakage", "by_attack")


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each defense buys: one row per defense and seed, the frontier, and advice.

    data: the dictionary of compare.json; it is copied, and must be JSON.
    """

    data: dict[str, Any]

    def __post_init__(self) -> None:
        plain = json.loads(json.dumps(self.data, allow_nan=False))
        object.__setattr__(self, "data", plain)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per defense and seed, as in compare.json; a copy."""
        found: list[dict[str, Any]] = copy.deepcopy(self.data["rows"])
        return found

    @property
    def summary(self) -> list[dict[str, Any]]:
        """One entry per defense: means over the seeds, with intervals; a copy."""
        found: list[dict[str, Any]] = copy.deepcopy(self.data["summary"])
        return found

    @property
    def frontier(self) -> list[str]:
        """The defenses that no other significantly dominates in test and attack accuracy."""
        return [*self.data["frontier"]]

    @property
    def advice(self) -> str:
        """What to do, in sentences that the intervals support."""
        return str(self.data["advice"])

    def to_dict(self) -> dict[str, Any]:
        """The whole comparison as plain dictionaries, lists, strings and numbers; a copy."""
        return copy.deepcopy(self.data)

    def to_json(self) -> str:
        """The text of compare.json."""
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """The text of compare.csv: the rows, one to a line."""
        rows = [_flat(row) for row in self.data["rows"]]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([cell(name) for name in rows[0]])
        writer.writerows([cell(value) for value in row.values()] for row in rows)
        return file.getvalue()

    def to_html(self) -> str:
        """The text of compare.html: one page that needs nothing but itself."""
        from leakscope.report.comparison_page import render

        return render(self.data)

    def save(self, folder: str | Path) -> Path:
        """Write compare.csv, compare.html and compare.json, the last one last; the folder."""
        folder = Path(folder)
        texts = (self.to_csv(), self.to_html(), self.to_json())
        write_together(folder, dict(zip(FILES, texts, strict=True)))
        return folder

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """A comparison from its compare.json, or from the folder that holds it."""
        path = Path(path)
        if path.is_dir():
            path = path / "compare.json"
        try:
            data = strict_json(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"The comparison {str(path)!r} cannot be read ({error}); give a compare.json or "
                "the folder that holds it"
            ) from error
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION or REQUIRED - set(data):
            raise InputError(
                f"The file {str(path)!r} is not a comparison of schema version {SCHEMA_VERSION} "
                f"(schema_version is {version!r}); compare again with this version of leakscope"
            )
        return cls(data)

    def _repr_html_(self) -> str:
        """The page for a notebook."""
        return framed(self.to_html(), "Leakscope comparison")

    def __repr__(self) -> str:
        lines = [f"<leakscope comparison of {len(self.data['summary'])} defenses>", self.advice]
        for one in self.data["summary"]:
            leaking, right = one["attack_accuracy"], one["test_accuracy"]
            lines.append(
                f"{one['defense']}: attack accuracy {number(leaking['value'])} ({span(leaking)}), "
                f"test accuracy {number(right['value'])} ({span(right)})"
            )
        return "\n".join(lines)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its leakage as columns of their own."""
    leakage = row["leakage"]
    measured = {
        f"{name}{end and '_'}{end}": None if leakage is None else leakage[name][end or "value"]
        for name in GAIN
        for end in ("", "low", "high")
    }
    return {key: value for key, value in row.items() if key not in NESTED} | measured
