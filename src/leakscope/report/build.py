"""Report: what an audit found, as a plain dictionary with a published schema, and its files."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.errors import InputError
from leakscope.report.folders import write_together
from leakscope.report.json_text import read_json
from leakscope.report.records import RecordTable
from leakscope.report.redaction import FEWEST, redact, refuse_telling_files
from leakscope.report.words import badge, framed, headline_outcome, number, span

if TYPE_CHECKING:
    from leakscope.report.person import OneRecord

SCHEMA_VERSION = 2

# An array of numbers, one to a line, as json.dumps indents it. A line break inside a JSON string
# is written \n, so this cannot match within one.
_NUMBERS = re.compile(r"\[\n\s+([-\d][^\[\]{}\"\n]*(?:\n\s+[-\d][^\[\]{}\"\n]*)*)\n\s+\]")


@cache
def _schema_text() -> str:
    return resources.files("leakscope.report").joinpath("schema.json").read_text("utf-8")


def load_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of report.json; its descriptions document every key."""
    schema: dict[str, Any] = json.loads(_schema_text())
    return schema


@dataclass(frozen=True)
class Verdict:
    """The answer of an audit; level is leaks, no_leak_found, undecided or invalid.

    attack: the significant attack of largest advantage, or the one that came closest.
    attack_at_low_fpr: the one that finds most members at 1 % FPR, where some finds more than by
    chance. within_limit: whether a leak stays within the limits. tail_limit: the most members found
    at 1 % FPR, as a multiple of that rate. conditions: what the audit could not check.
    """

    level: str
    headline: str
    attack: str | None
    limit: float
    records_to_decide: int | None
    reason: str
    attack_at_low_fpr: str | None = None
    within_limit: bool = False
    tail_limit: float = 5.0
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Report:
    """What an audit found: outcomes, controls and the verdict.

    data: the dictionary that schema.json describes. It is copied; numpy's numbers and arrays become
    plain ones, and a number that is not finite becomes None. records: one row per record, if known.
    """

    data: dict[str, Any]
    records: RecordTable | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _plain(self.data))

    @property
    def verdict(self) -> Verdict:
        """The answer: its level, headline, reason, and the attacks that it rests on."""
        found = self.data["verdict"]
        values = {field.name: found[field.name] for field in fields(Verdict)}
        return Verdict(**values | {"conditions": tuple(found["conditions"])})

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """What each attack achieved, as in report.json; a copy."""
        found: list[dict[str, Any]] = copy.deepcopy(self.data["outcomes"])
        return found

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain dictionaries, lists, strings and numbers; a copy."""
        return copy.deepcopy(self.data)

    def to_json(self) -> str:
        """The text of report.json."""
        text = json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False)
        return _NUMBERS.sub(lambda found: "[" + " ".join(found[1].split()) + "]", text) + "\n"

    def to_html(self) -> str:
        """The text of report.html: one page that needs nothing but itself."""
        from leakscope.report.html import render

        return render(self.data)

    def redacted(self, fewest: int = FEWEST) -> Report:
        """The report without what tells of single records or of small groups, to be passed on.

        Groups of fewer members or non-members are withheld, and others where those could be had by
        subtraction; so are scores, the table of records, values of records in sentences, and paths.
        """
        return Report(redact(self.data, fewest))

    def save(self, folder: str | Path) -> Path:
        """Write report.json, report.html and, where records are known, records.csv; the folder.

        Every file is written in full beside its place before any is put there, so that a failure
        leaves what was there before. report.json comes last: where it is new, the others are too.
        It holds the digest of records.csv, so that files of two runs are told apart. A redacted
        report is not put beside the records of one that is not.
        """
        folder = Path(folder)
        if self.data.get("redacted"):
            refuse_telling_files(folder)
        if self.records is None:
            texts: dict[str, str | Iterable[str]] = {}
            texts |= {"report.html": self.to_html(), "report.json": self.to_json()}
        else:
            texts = _beside_records(self, self.records)
        write_together(folder, texts)
        return folder

    def record(self, row: int, side: str = "members") -> OneRecord:
        """What the audit says of one record: its scores, its leakage, its groups, in words.

        row: its place among the members, or the nonmembers, as they were handed in, from 0.
        """
        from leakscope.report.person import find_record

        return find_record(self.data, self.records, row, side)

    @classmethod
    def load(cls, path: str | Path, *, records: bool = False) -> Report:
        """A report from its report.json, or from the folder that holds it.

        records: also what records.csv beside it tells of each record.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "report.json"
        try:
            data = read_json(path)
        except OSError as error:
            raise InputError(
                f"The report {str(path)!r} cannot be read ({error.strerror}); "
                "give a report.json or the folder that holds it"
            ) from error
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"The file {str(path)!r} is not JSON ({error}); give a report.json"
            ) from error
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION or set(load_schema()["required"]) - set(data):
            raise InputError(
                f"The file {str(path)!r} is not a report of schema version {SCHEMA_VERSION} "
                f"(schema_version is {version!r}); audit again with this version of leakscope"
            )
        digest = data.pop("records_sha256", None)  # of the file in that folder, not of the report
        if not records:
            return cls(data)
        from leakscope.report.reading import check_records, read_records

        check_records(path.parent, digest)
        attacks = [one["attack"] for one in data["outcomes"]]
        return cls(data, read_records(path.parent, attacks))

    def _repr_html_(self) -> str:
        """The page for a notebook."""
        return framed(self.to_html(), "Leakscope report")

    def __repr__(self) -> str:
        verdict, strongest = self.verdict, headline_outcome(self.data)
        lines = [
            f"<leakscope report: {badge(self.data['verdict'])}>",
            verdict.headline,
        ]
        if strongest is not None:
            advantage = strongest["advantage"]
            lines += [
                f"{strongest['attack']}: advantage {number(advantage['value'])} "
                f"({span(advantage)}); attacks tried: {len(self.data['outcomes'])}"
            ]
        return "\n".join(lines)


def _beside_records(report: Report, records: RecordTable) -> dict[str, Iterable[str]]:
    """The files of a report with its table; the report holds the digest of the table.

    They are made while they are written, in this order: the table is never one text.
    """
    digest = hashlib.sha256()

    def table() -> Iterator[str]:
        for lines in records.lines():
            digest.update(lines.encode())
            yield lines

    def after(text: Callable[[Report], str]) -> Iterator[str]:
        yield text(Report(report.data | {"records_sha256": digest.hexdigest()}))

    return {
        "records.csv": table(),
        "report.html": after(Report.to_html),
        "report.json": after(Report.to_json),
    }


def _plain(value: Any) -> Any:
    """The same in the types of JSON: numpy's become Python's, what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        # Half a surrogate pair is a legal Python string that no file can hold.
        return str(value).encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    raise TypeError(f"A report holds numbers, texts, lists and dictionaries, not {value!r}")
