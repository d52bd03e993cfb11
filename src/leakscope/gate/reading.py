"""What the gate reads of a report: its JSON, with a type for every number it will decide on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.errors import InputError
from leakscope.metrics.intervals import Interval
from leakscope.metrics.rates import Rates
from leakscope.metrics.tails import Rate
from leakscope.report import Report
from leakscope.report.reading import by_its_schema

INVALID = "invalid"
MOST = 2**53  # records; beyond, a float does not hold every whole number
ROUNDING = 1e-9


@dataclass(frozen=True)
class Attacked:
    """What a report tells of one attack; NaN where it gives no number.

    curve: points of the ROC curve, each a false and a true positive rate.
    """

    attack: str
    auc: Interval
    advantage: Interval
    rates: Rates
    tpr_at_fpr: tuple[Rate, ...]
    curve: tuple[tuple[float, float], ...]
    models: int
    p_value: float
    adjusted_p: float


@dataclass(frozen=True)
class Audited:
    """What a report tells of an audit, as far as a gate asks.

    name: the file, as it was given. sides: members and non-members, in records. persons: the same
    in persons, where rows belong to them. recovered: each extraction, and how many records it
    brought back.
    """

    name: str
    version: str
    task: str
    dataset: str | None
    sides: tuple[int, int]
    persons: tuple[int, int]
    level: str
    limit: float
    reason: str
    attacks: tuple[Attacked, ...]
    recovered: tuple[tuple[str, int], ...]
    not_run: dict[str, str]

    @property
    def ran(self) -> set[str]:
        """The names of the attacks and extractions that ran."""
        return {one.attack for one in self.attacks} | {name for name, _ in self.recovered}

    @property
    def invalid(self) -> bool:
        """Whether a control failed or nothing ran: no limit can be decided then."""
        return self.level == INVALID or not self.attacks


def read_report(report: Report | str | Path) -> Audited:
    """The report, or the one in this report.json or its folder, as the gate needs it."""
    if not isinstance(report, Report | str | Path):
        raise InputError(
            f"A report is {type(report).__name__!r}; give a Report, a report.json or the folder "
            "that holds it"
        )
    name = "report" if isinstance(report, Report) else str(report)
    data = (report if isinstance(report, Report) else Report.load(report)).data
    with by_its_schema(name):
        return _audited(data, name)


def _audited(data: Mapping[str, Any], name: str) -> Audited:
    target, verdict = data["target"], data["verdict"]
    sides = (_count(target["members"]), _count(target["nonmembers"]))
    units = target["units"]
    return Audited(
        name=name,
        version=str(data["leakscope"]),
        task=str(target["task"]),
        dataset=target["dataset"],
        sides=sides,
        persons=sides if units is None else (_count(units["members"]), _count(units["nonmembers"])),
        level=str(verdict["level"]),
        limit=_number(verdict["limit"], 0.0, 1.0),
        reason=str(verdict["reason"]),
        attacks=tuple(_attacked(one) for one in data["outcomes"]),
        recovered=tuple(
            (str(one["extraction"]), _count(one["recovered"])) for one in data["disclosures"]
        ),
        not_run={str(one["attack"]): str(one["reason"]) for one in data["not_run"]},
    )


def _attacked(outcome: Mapping[str, Any]) -> Attacked:
    return Attacked(
        attack=str(outcome["attack"]),
        auc=_interval(outcome["auc"], 0.0),
        advantage=_interval(outcome["advantage"], -1.0),
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
    )


def _rate(entry: Mapping[str, Any]) -> Rate:
    return Rate(_share(entry["fpr"]), *_ends(entry, 0.0), entry["resolved"] is True)


def _interval(figure: Mapping[str, Any], least: float) -> Interval:
    return Interval(*_ends(figure, least))


def _ends(figure: Mapping[str, Any], least: float) -> tuple[float, float, float]:
    """A value and the ends of its interval, all from least to 1."""
    value, low, high = (_number(figure[key], least, 1.0) for key in ("value", "low", "high"))
    if low > high:
        raise ValueError(f"an interval goes from {low:g} to {high:g}")
    return value, low, high


def _share(value: Any) -> float:
    return _number(value, 0.0, 1.0)


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(f"{value!r:.40} is no number of records")
    return int(value)


def _number(value: Any, least: float, most: float) -> float:
    """A number of JSON within these bounds, NaN for null; a text or a boolean is refused."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    if not least - ROUNDING <= value <= most + ROUNDING:
        raise ValueError(f"{value!r:.40} is not between {least:g} and {most:g}")
    return float(value)
