"""Reports, runs and figures that cannot be read, held to limits or computed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from bad_input.cases import Case, Content, case
from gated import attacked, audited, report_of


@cache
def report_text(dataset: str | None = "adult", task: str = "classification") -> str:
    """A good report.json."""
    found = {0.01: (0.02, 0.01, 0.03)}
    return report_of(audited(attacked("loss", found=found), dataset=dataset, task=task)).to_json()


def changed(change: Callable[[Any], object]) -> str:
    """The report after a change to its JSON."""
    report = json.loads(report_text())
    change(report)
    return json.dumps(report)


def without(*path: Any) -> str:
    *above, last = path

    def drop(report: Any) -> None:
        for key in above:
            report = report[key]
        del report[last]

    return changed(drop)


def setting(value: Any, *path: Any) -> str:
    *above, last = path

    def put(report: Any) -> None:
        for key in above:
            report = report[key]
        report[last] = value

    return changed(put)


CHECK = "check report.json"
FILES: dict[str, Content] = {
    "an empty report": "",
    "no JSON": "{'level': 'leaks'}",
    "a number": "1",
    "a list": "[]",
    "nothing": "null",
    "a text": '"report"',
    "an empty object": "{}",
    "a report cut short": report_text()[:2000],
    "a report in UTF-16": report_text().encode("utf-16"),
    "a report with a bad byte": report_text().encode().replace(b"adult", b"ad\xfflt"),
    "a report below a million brackets": "[" * 1_000_000,
    "a number of many digits": setting(0, "seed").replace('"seed": 0', '"seed": ' + "9" * 5000),
    "another schema": setting(99, "schema_version"),
    "no schema": without("schema_version"),
    "no outcomes": without("outcomes"),
    "no verdict": without("verdict"),
}
UNREADABLE = [
    case(f"{name} to check", CHECK, "'report.json'", files={"report.json": content})
    for name, content in FILES.items()
]

# What is wrong in a report that has all its keys.
DAMAGE = {
    "outcomes as an object": setting({}, "outcomes").replace('"outcomes": {}', '"outcomes": 3'),
    "no target": setting(None, "target"),
    "members as a text": setting("many", "target", "members"),
    "no members": without("target", "members"),
    "an advantage as a text": setting("0.1", "outcomes", 0, "advantage", "value"),
    "an advantage as a truth value": setting(True, "outcomes", 0, "advantage", "high"),
    "no rates": without("outcomes", 0, "rates"),
    "a curve of unequal sides": setting([0.5], "outcomes", 0, "curve", "fpr"),
    "rates as a number": setting(1, "outcomes", 0, "tpr_at_fpr"),
    "a limit as a text": setting("low", "verdict", "limit"),
    "no limit": setting(None, "verdict", "limit"),
    "reasons as numbers": setting([1], "not_run"),
    "disclosures as texts": setting(["x"], "disclosures"),
}
DAMAGED = [
    case(f"a report with {name}", CHECK, "report", files={"report.json": text})
    for name, text in DAMAGE.items()
]

GOOD: dict[str, Content] = {"report.json": report_text(), "old.json": report_text()}
LIMITS = [
    case("no report", "check gone.json", "'gone.json'"),
    case("no report named", "check", "REPORT"),
    case("a report without an end", "check /dev/zero", "'/dev/zero'", "more than the 64 MiB"),
    case("a baseline without an end", f"{CHECK} --baseline /dev/zero", "'/dev/zero'", "64 MiB",
         files=GOOD),
    case("a folder without a report", "check runs", "runs/report.json", files={"runs": None}),
    case("an advantage above 1", f"{CHECK} --max-advantage 1.5", "max_advantage", "1.5",
         files=GOOD),
    case("an advantage below 0", f"{CHECK} --max-advantage -0.1", "max_advantage", "-0.1",
         files=GOOD),
    case("an advantage that is no number", f"{CHECK} --max-advantage nan", "max_advantage", "nan",
         files=GOOD),
    case("an advantage of words", f"{CHECK} --max-advantage low", "--max-advantage", files=GOOD),
    case("an AUC below a half", f"{CHECK} --max-auc 0.4", "max_auc", "0.4", files=GOOD),
    case("a TPR without an FPR", f"{CHECK} --max-tpr 0.02", "max_tpr", "'0.02'", files=GOOD),
    case("a TPR of words", f"{CHECK} --max-tpr low@0.01", "'low@0.01'", files=GOOD),
    case("a TPR of three numbers", f"{CHECK} --max-tpr 0.1@0.1@0.1", "'0.1@0.1@0.1'", files=GOOD),
    case("a TPR below its FPR", f"{CHECK} --max-tpr 0.01@0.02", "'0.01@0.02'", files=GOOD),
    case("a TPR at an FPR of 0", f"{CHECK} --max-tpr 0.1@0", "'0.1@0'", files=GOOD),
    case("an FPR that the report has not", f"{CHECK} --max-tpr 0.5@0.2", "0.2", "0.01", files=GOOD),
    case("fewer than no records", f"{CHECK} --max-disclosed -1", "max_disclosed", "-1", files=GOOD),
    case("half a record", f"{CHECK} --max-disclosed 0.5", "--max-disclosed", files=GOOD),
    case("an attack nobody knows", f"{CHECK} --require liar", "'liar'", "'lira'", files=GOOD),
    case("a tolerance below 0", f"{CHECK} --tolerance -1", "tolerance", "-1", files=GOOD),
    case("no baseline", f"{CHECK} --baseline gone.json", "'gone.json'", files=GOOD),
    case("a baseline that is no report", f"{CHECK} --baseline a.csv", "'a.csv'", files=GOOD),
    case("a baseline of other data", f"{CHECK} --baseline old.json", "'old.json'", "'iris'",
         "'adult'", files={**GOOD, "old.json": report_text("iris")}),
    case("a baseline of another task", f"{CHECK} --baseline old.json", "'old.json'", "'regression'",
         files={**GOOD, "old.json": report_text("adult", "regression")}),
    case("a page of no job", f"{CHECK} --github", "GITHUB_STEP_SUMMARY", files=GOOD),
    case("two reports", f"{CHECK} old.json", "old.json", files=GOOD),
]  # fmt: skip

TABLE = "row,side,label,vulnerable,score_loss\n0,member,1,no,0.5\n0,nonmember,1,no,0.25\n"
OF_TWO = changed(lambda report: report["target"].update(members=1, nonmembers=1))


def run_of(table: str | bytes, report: str = OF_TWO) -> dict[str, Content]:
    """A run whose report holds the digest of its table."""
    written = table.encode() if isinstance(table, str) else table
    digest = {"records_sha256": hashlib.sha256(written).hexdigest()}
    text = json.dumps(json.loads(report) | digest)
    return {"run/report.json": text, "run/records.csv": table}


RUN = run_of(TABLE)
RECORD = "record run --row 0"
RECORDS = [
    case("no run", "record gone --row 0", "'gone'"),
    case("a run without a report", RECORD, "report.json", files={"run": None}),
    case("a run without records", RECORD, "'run'", "records.csv",
         files={"run/report.json": report_text()}),
    case("no row", "record run", "--row", files=RUN),
    case("a row below 0", "record run --row -1", "--row", files=RUN),
    case("a row beyond the last", "record run --row 7", "row 7", "row 0", files=RUN),
    case("a side nobody knows", f"{RECORD} --side others", "'others'", files=RUN),
    case("records of another size", RECORD, "1 members", "1,000",
         files=run_of(TABLE, report_text())),
    case("records of another run", RECORD, "is not of the same run", "where the report has",
         files={**RUN, "run/records.csv": TABLE.replace("0.5", "0.75")}),
    case("records of no run", RECORD, "is not of the same run", "saved without one",
         files={**RUN, "run/report.json": report_text()}),
    case("records without a side", RECORD, "'side'",
         files=run_of(TABLE.replace("side", "sides", 1))),
    case("records with a longer row", RECORD, "Line 2", "6 cells",
         files=run_of(TABLE.replace("0.5", "0.5,1"))),
    case("records with a score of words", RECORD, "Line 2", "'high'",
         files=run_of(TABLE.replace("0.5", "high"))),
    case("records with a row of words", RECORD, "'first'",
         files=run_of(TABLE.replace("0,member", "first,member"))),
    case("records with a row of twenty digits", RECORD, "9" * 20,
         files=run_of(TABLE.replace("0,member", "9" * 20 + ",member"))),
    case("records in UTF-16", RECORD, "records.csv",
         files=run_of(TABLE.encode("utf-16"))),
    case("records with an open quote", RECORD, "records.csv",
         files=run_of(TABLE.replace("member", '"member', 1))),
    case("records without an end", RECORD, "records.csv", "device",
         files={**RUN, "run/records.csv": lambda path: path.symlink_to("/dev/zero")}),
    case("a record of a report without an end", RECORD, "report.json", "64 MiB",
         files={"run/report.json": lambda path: path.symlink_to("/dev/zero")}),
    case("records in one long line", RECORD, "records.csv", "16,777,216",
         files=run_of("x" * 2**24)),
    case("empty records", RECORD, "records.csv", files=run_of("")),
    case("a folder for records", RECORD, "records.csv",
         files={"run/report.json": report_text(), "run/records.csv": None}),
    case("a report with odd outcomes", RECORD, "report 'run'",
         files=run_of(TABLE, setting([1], "outcomes"))),
    case("a report with an odd target", RECORD, "report 'run'",
         files=run_of(TABLE, setting(None, "target"))),
    case("a report with an odd verdict", RECORD, "report 'run'",
         files=run_of(TABLE, json.dumps(json.loads(OF_TWO) | {"verdict": 1}))),
]  # fmt: skip

FIGURES = [
    case("a figure nobody knows", "reproduce farokhi-fig9 --out out", "'farokhi-fig9'",
         "did you mean 'farokhi-fig"),
    case("a figure like none", "reproduce qqqq --out out", "'qqqq'"),
    case("no figure", "reproduce", "--list"),
    case("a figure beside the list", "reproduce farokhi-fig1 --list", "--list", "'farokhi-fig1'"),
    case("a data folder that is not there", "reproduce farokhi-fig1 --data gone", "'gone'"),
    case("a file for the data folder", "reproduce farokhi-fig1 --data a.csv", "'a.csv'"),
    case("no seeds", "reproduce farokhi-fig1 --seeds 0", "--seeds"),
    case("a seed below 0", "reproduce farokhi-fig1 --seed -1", "--seed"),
    case("a scale nobody knows", "reproduce farokhi-fig1 --scale huge", "--scale", "'huge'"),
    case("no workers", "reproduce farokhi-fig1 --workers 0", "--workers"),
    case("a file for the folder", "reproduce farokhi-fig1 --out a.csv", "'a.csv'"),
    case("a folder for a file", "reproduce farokhi-fig1 --out out", "farokhi-fig1.json",
         files={"out/farokhi-fig1.json": None}),
    case("two figures", "reproduce farokhi-fig1 farokhi-fig2", "farokhi-fig2"),
]  # fmt: skip

LISTS = ("datasets", "attacks", "extractions", "channels", "defenses", "recipes")
LISTINGS = [
    *(case(f"{name} with a stray word", f"{name} all", "all") for name in LISTS),
    *(case(f"{name} with an option", f"{name} --jsn", "--jsn", "--json") for name in LISTS),
]

CASES: list[Case] = [*UNREADABLE, *DAMAGED, *LIMITS, *RECORDS, *FIGURES, *LISTINGS]
