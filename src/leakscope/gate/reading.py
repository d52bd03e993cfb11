"""What the gate reads of a report: its JSON, with a type for every number it will decide on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leakscope.controls import Control
from leakscope.errors import InputError
from leakscope.gate.consistency import refuse_contradictions
from leakscope.metrics.intervals import Interval
from leakscope.metrics.rates import Rates
from leakscope.metrics.tail_test import LEVEL, TailTest, beyond_limit
from leakscope.metrics.tails import Rate
from leakscope.metrics.thresholds import CHOSEN
from leakscope.report import RecordTable, Report
from leakscope.report.build import SCHEMA_VERSION
from leakscope.report.reading import FILE, by_its_schema
from leakscope.report.threat_models import sees_predictions
from leakscope.report.words import CONSTANT, LEVELS, persons_per_record

INVALID = "invalid"
LEARNED = "members of the other half"
MOST = 2**53  # records; beyond, a float does not hold every whole number
ROUNDING = 1e-9


@dataclass(frozen=True)
class Attacked:
    """What a report tells of one attack; NaN where it gives no number.

    curve: points of the ROC curve, each a false and a true positive rate. threshold: the score
    from which a record is called a member, NaN where the report has none. calibrated: whether it
    was chosen on some of the records. learned: whether known members of one half trained the
    attack on the other. tails: the tests of the highest scores.
    """

    attack: str
    channel: str
    auc: Interval
    advantage: Interval
    accuracy: float
    rates: Rates
    tpr_at_fpr: tuple[Rate, ...]
    curve: tuple[tuple[float, float], ...]
    models: int
    p_value: float
    adjusted_p: float
    threshold: float = math.nan
    calibrated: bool = False
    learned: bool = False
    tails: tuple[TailTest, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether all scores are equal: no threshold tells any two records apart."""
        return len(self.curve) == 2 and self.auc == Interval(0.5, 0.5, 0.5)

    @property
    def call(self) -> tuple[float, float] | None:
        """The false and true positive rate of an attack that answers yes or no; None for others.

        Such an attack has two different scores. Its area is that of the two chords of its curve,
        which tells it from a curve of which points were withheld.
        """
        if len(self.curve) != 3:
            return None
        fpr, tpr = self.curve[1]
        return (fpr, tpr) if math.isclose(self.auc.value, (1 + tpr - fpr) / 2) else None

    @property
    def complete(self) -> bool:
        """Whether the report gives every number that a decision rests on."""
        intervals = [(one.value, one.low, one.high) for one in (self.auc, self.advantage)]
        numbers = [number for one in intervals for number in one]
        rates = (self.rates.tpr, self.rates.fpr, self.rates.members, self.rates.nonmembers)
        return all(map(math.isfinite, [*numbers, *rates, self.p_value, self.adjusted_p]))


@dataclass(frozen=True)
class Audited:
    """What a report tells of an audit, as far as a gate asks.

    name: the file, as it was given. sides: members and non-members, in records. persons: the same
    in persons, where rows belong to them. attacks: those whose scores vary. recovered: each
    extraction, and how many records it brought back. fingerprint: digests of the columns and of
    each side. leading: the attack that finds most members at low FPRs. limit, tail_limit: the
    advantage, and the multiple of 1 % of members found at 1 % FPR, that the verdict allows;
    within_limit: whether it says that a leak is within both. records: the table of records, where
    it was read.
    """

    name: str
    version: str
    task: str
    dataset: str | None
    classes: tuple[str, ...] | None
    features: int | None
    unit: str | None
    fingerprint: Mapping[str, str | None] | None
    redacted: bool
    sides: tuple[int, int]
    persons: tuple[int, int]
    level: str
    limit: float
    reason: str
    strongest: str | None
    leading: str | None
    within_limit: bool
    tail_limit: float
    controls: tuple[Control, ...]
    attacks: tuple[Attacked, ...]
    recovered: tuple[tuple[str, int], ...]
    not_run: dict[str, str]
    records: RecordTable | None = field(default=None, compare=False)

    @property
    def ran(self) -> set[str]:
        """The names of the attacks and extractions that ran."""
        return {one.attack for one in self.attacks} | {name for name, _ in self.recovered}

    @property
    def invalid(self) -> bool:
        """Whether a control failed or nothing ran: no limit can be decided then."""
        return self.level == INVALID or not self.attacks

    @property
    def largest(self) -> int:
        """The number of records on the larger side."""
        return max(self.sides)

    @property
    def persons_per_record(self) -> float:
        """How many persons a record stands for; 1 where rows are persons."""
        return persons_per_record(self.persons, self.sides)

    @property
    def untested(self) -> bool:
        """Whether no attack saw the model's own predictions: confidence or labels."""
        return not any(sees_predictions(one.channel) for one in self.attacks)

    @property
    def few_exposed(self) -> tuple[str, float] | None:
        """The attack that singles out a few members beyond the report's limit, and the FPR.

        Its highest scores hold significantly more members than chance explains, and the share
        found at that FPR may exceed the limit. The verdict's own attack is named, if it is one.
        """
        beyond = {}
        for one in self.attacks:
            significant = {test.fpr for test in one.tails if test.adjusted_p <= LEVEL}
            over = beyond_limit(one.tpr_at_fpr, one.tails, self.tail_limit)
            rates = [fpr for fpr, _ in over if fpr in significant]
            if rates:
                beyond[one.attack] = min(rates)
        name = self.leading if self.leading in beyond else next(iter(beyond), None)
        return None if name is None else (name, beyond[name])

    @property
    def no_evidence(self) -> bool:
        """Whether the verdict is open for another reason than the figures of an attack."""
        return self.level == "undecided" and self.strongest is None


def read_report(report: Report | str | Path, *, records: bool = False) -> Audited:
    """The report, or the one in this report.json or its folder, as the gate needs it.

    records: also the table of records, where the report has it or records.csv is beside it.
    """
    if not isinstance(report, Report | str | Path):
        raise InputError(
            f"A report is {type(report).__name__!r}; give a Report, a report.json or the folder "
            "that holds it"
        )
    name = "report" if isinstance(report, Report) else str(report)
    loaded = report if isinstance(report, Report) else Report.load(report)
    with by_its_schema(name):
        audited = _audited(loaded.data, name, _records(report) if records else None)
        refuse_contradictions(audited)
    return _without_constants(audited)


def _without_constants(audited: Audited) -> Audited:
    """The attacks whose scores are the same for every record among those that did not run."""
    constant = {one.attack: CONSTANT for one in audited.attacks if one.constant}
    varying = tuple(one for one in audited.attacks if not one.constant)
    return replace(audited, attacks=varying, not_run=audited.not_run | constant)


def _records(report: Report | str | Path) -> RecordTable | None:
    if isinstance(report, Report):
        return report.records
    path = Path(report)
    folder = path if path.is_dir() else path.parent
    # A report under another name was taken out of its folder.
    if (not path.is_dir() and path.name != "report.json") or not (folder / FILE).is_file():
        return None
    return Report.load(folder, records=True).records


def _audited(data: Mapping[str, Any], name: str, records: RecordTable | None) -> Audited:
    if data["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version is {data['schema_version']!r:.40}")
    target, verdict = data["target"], data["verdict"]
    sides = (_count(target["members"]), _count(target["nonmembers"]))
    units, classes = target["units"], target["classes"]
    attacks = tuple(_attacked(one) for one in data["outcomes"])
    not_run = {str(one["attack"]): str(one["reason"]) for one in data["not_run"]}
    return Audited(
        name=name,
        version=str(data["leakscope"]),
        task=str(target["task"]),
        dataset=target["dataset"],
        classes=None if classes is None else tuple(sorted(map(str, classes))),
        features=target["features"],
        unit=target["unit"],
        fingerprint=_fingerprint(target.get("fingerprint")),
        redacted=bool(data.get("redacted")),
        sides=sides,
        persons=sides if units is None else (_count(units["members"]), _count(units["nonmembers"])),
        level=_level(verdict["level"]),
        limit=_known(_share(verdict["limit"])),
        reason=str(verdict["reason"]),
        strongest=verdict["attack"],
        leading=verdict["attack_at_low_fpr"],
        within_limit=_truth(verdict["within_limit"]),
        tail_limit=_known(_number(verdict["tail_limit"], 1.0, 100.0)),
        controls=tuple(_control(one) for one in data["controls"]),
        attacks=attacks,
        recovered=tuple(
            (str(one["extraction"]), _count(one["recovered"])) for one in data["disclosures"]
        ),
        not_run=not_run,
        records=records,
    )


def _attacked(outcome: Mapping[str, Any]) -> Attacked:
    threshold = outcome["threshold"]
    return Attacked(
        attack=str(outcome["attack"]),
        channel=str(outcome["channel"]),
        auc=_interval(outcome["auc"], 0.0),
        advantage=_interval(outcome["advantage"], -1.0),
        accuracy=_share(outcome["accuracy"]["value"]),
        rates=Rates(
            *(_share(outcome["rates"][key]) for key in ("tpr", "fpr")),
            *(_number(outcome["rates"][key], 0.0, MOST) for key in ("members", "nonmembers")),
        ),
        tpr_at_fpr=tuple(_rate(one) for one in outcome["tpr_at_fpr"]),
        curve=tuple(
            zip(*(map(_share, outcome["curve"][key]) for key in ("fpr", "tpr")), strict=True)
        ),
        models=_count(outcome["models"]),
        p_value=_share(outcome["p_value"]),
        adjusted_p=_share(outcome["adjusted_p"]),
        threshold=_number(threshold["value"], -math.inf, math.inf),
        calibrated=str(threshold["source"]) == CHOSEN,
        learned=outcome["knowledge"] == LEARNED,
        tails=tuple(_tail(entry) for entry in outcome["tails"]),
    )


def _tail(entry: Mapping[str, Any]) -> TailTest:
    counts = (_count(entry[key]) for key in ("found", "members", "accused", "nonmembers"))
    shares = (_share(entry[key]) for key in ("p_value", "adjusted_p"))
    return TailTest(_share(entry["fpr"]), *counts, *shares)


def _control(entry: Mapping[str, Any]) -> Control:
    passed, fatal = entry["passed"], entry["fatal"]
    if passed not in (True, False, None) or fatal not in (True, False):
        raise ValueError(f"a control has passed {passed!r:.40} and fatal {fatal!r:.40}")
    texts = (str(entry["name"]), str(entry["detail"]), str(entry.get("assumption") or ""))
    return Control(texts[0], passed, fatal, *texts[1:])


def _fingerprint(entry: Mapping[str, Any] | None) -> dict[str, str | None] | None:
    if entry is None:
        return None
    found = {key: entry[key] for key in ("columns", "members", "nonmembers")}
    if not all(value is None or isinstance(value, str) for value in found.values()):
        raise TypeError(f"the fingerprint is {found!r:.100}")
    return found


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is neither true nor false")
    return value


def _level(value: Any) -> str:
    if value not in LEVELS:
        raise ValueError(f"the level of the verdict is {value!r:.40}")
    return str(value)


def _rate(entry: Mapping[str, Any]) -> Rate:
    size = _number(entry.get("effective_nonmembers"), 0.0, MOST)
    return Rate(_share(entry["fpr"]), *_ends(entry, 0.0), _truth(entry["resolved"]), size)


def _interval(figure: Mapping[str, Any], least: float) -> Interval:
    return Interval(*_ends(figure, least))


def _ends(figure: Mapping[str, Any], least: float) -> tuple[float, float, float]:
    """A value and the ends of its interval, all from least to 1."""
    value, low, high = (_number(figure[key], least, 1.0) for key in ("value", "low", "high"))
    if low > high or value < low - ROUNDING or value > high + ROUNDING:
        raise ValueError(f"an interval goes from {low:g} to {high:g} around {value:g}")
    return value, low, high


def _share(value: Any) -> float:
    return _number(value, 0.0, 1.0)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(f"{value!r:.40} is no number of records")
    return int(value)


def _known(value: float) -> float:
    if math.isnan(value):
        raise ValueError("a limit is null")
    return value


def _number(value: Any, least: float, most: float) -> float:
    """A number of JSON within these bounds, NaN for null; a text or a boolean is refused."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    if not least - ROUNDING <= value <= most + ROUNDING:
        raise ValueError(f"{value!r:.40} is not between {least:g} and {most:g}")
    return float(value)
