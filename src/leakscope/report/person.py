"""One record of an audit: what each attack makes of it, and what that means for whom it is of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.metrics.intervals import NONE, Interval, finite
from leakscope.metrics.standing import share_at_least
from leakscope.metrics.tails import cut_at
from leakscope.report.advice import next_steps
from leakscope.report.records import RecordTable
from leakscope.report.words import headline_outcome

Json = Mapping[str, Any]
Side = Literal["members", "nonmembers"]
SIDES: dict[str, str] = {"members": "member", "nonmembers": "nonmember"}
TAUGHT = "members of the other half"  # what an attack knows that was taught by known members


@dataclass(frozen=True)
class Standing:
    """What one attack makes of the record.

    score: None where it has none. nonmembers: how many others it is compared with. false_alarms:
    the share of them with a score as high, so that an adversary who wants to name this record must
    accept so many false alarms. above_members: the share of the other members with a lower score.
    called: for each rate of false alarms whether the record is called a member at it; None where
    there are too few non-members.
    """

    attack: str
    channel: str
    score: float | None
    nonmembers: int
    false_alarms: Interval
    above_members: Interval
    called: dict[float, bool | None]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "attack": self.attack,
            "channel": self.channel,
            "score": self.score,
            "nonmembers": self.nonmembers,
            "false_alarms": self.false_alarms.to_dict(),
            "above_members": self.above_members.to_dict(),
            "called": [{"fpr": fpr, "called": called} for fpr, called in self.called.items()],
        }


@dataclass(frozen=True)
class OneRecord:
    """What an audit says of one record, in figures; ``words`` says it in sentences.

    row: its place in the input, on its side, from 0. attack: the one that the verdict is about.
    leakage: what models made this way tell of whether the record was theirs, in nats, and the share
    of all records of which they tell less; NaN without shadow models. groups: the groups it belongs
    to, with what that attack achieves on each. vulnerable: whether it is among those singled out,
    of which ``singled_out_by`` finds ``singled_out`` among all ``members``. next_steps: what would
    help.
    """

    row: int
    side: Side
    label: Any
    unit: Any
    verdict: Json
    attack: str | None
    standings: tuple[Standing, ...]
    leakage: float
    leakage_rank: float
    groups: tuple[Json, ...]
    vulnerable: bool
    singled_out_by: str | None
    singled_out: int
    members: int
    next_steps: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The same in sentences."""
        from leakscope.report.person_words import in_words

        return in_words(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        nats = finite(self.leakage)
        leakage = None if nats is None else {"nats": nats, "above": finite(self.leakage_rank)}
        return {
            "row": self.row,
            "side": self.side,
            "label": self.label,
            "unit": self.unit,
            "verdict": self.verdict["level"],
            "attack": self.attack,
            "attacks": [one.to_dict() for one in self.standings],
            "leakage": leakage,
            "groups": [dict(one) for one in self.groups],
            "vulnerable": self.vulnerable,
            "words": self.words,
            "next_steps": list(self.next_steps),
        }

    def __str__(self) -> str:
        return "\n".join(self.words)


def find_record(report: Json, table: RecordTable | None, row: int, side: str) -> OneRecord:
    """What the report and its table say of the record in this row of this side, from 0."""
    if table is None:
        raise InputError(
            "This report is redacted and tells of no single record; ask the one it was made from"
            if report.get("redacted")
            else "This report has no table of records; load it with Report.load(folder, "
            "records=True), from the folder that holds records.csv"
        )
    return _Looking(report, table).at(row, side)


class _Looking:
    """A report beside its table of records."""

    def __init__(self, report: Json, table: RecordTable) -> None:
        self.report = report
        self.columns = {name: np.asarray(values) for name, values in table.columns.items()}
        self.membership = self.columns["side"] == SIDES["members"]
        target, found = report["target"], int(self.membership.sum())
        if (found, len(self.membership) - found) != (target["members"], target["nonmembers"]):
            raise InputError(
                f"The table has {found:,} members and {len(self.membership) - found:,} non-members "
                f"where the report tells of {target['members']:,} and {target['nonmembers']:,}: it "
                "is of another run; audit again"
            )
        self.theirs = self._their_columns()

    def at(self, row: int, side: str) -> OneRecord:
        """The record in this row of this side."""
        here = self._find(row, side)
        strongest = headline_outcome(self.report)
        nats = np.asarray(self.columns.get("leakage_nats", np.full(len(self.membership), np.nan)))
        known = nats[~np.isnan(nats)]
        unit = self.report["target"]["unit"]
        flags = self.columns["vulnerable"] == "yes"
        return OneRecord(
            row=row,
            side="members" if self.membership[here] else "nonmembers",
            label=_plain(self.columns["label"][here]),
            unit=None if unit is None else _plain(self.columns[self.theirs[unit]][here]),
            verdict=self.report["verdict"],
            attack=None if strongest is None else strongest["attack"],
            standings=self._standings(here, strongest),
            leakage=float(nats[here]),
            leakage_rank=float((known < nats[here]).mean()) if len(known) else math.nan,
            groups=self._groups(here, strongest),
            vulnerable=bool(flags[here]),
            singled_out_by=self.report["verdict"]["attack_at_low_fpr"]
            or (None if strongest is None else strongest["attack"]),
            singled_out=int(flags.sum()),
            members=int(self.membership.sum()),
            next_steps=tuple(next_steps(self.report)),
        )

    def _find(self, row: Any, side: str) -> int:
        if side not in SIDES:
            raise InputError(f"The side is {side!r}; choose members or nonmembers")
        mine = self.columns["side"] == SIDES[side]
        rows = self.columns["row"][mine]
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or row < 0:
            raise InputError(f"The row is {row!r}; give a whole number, counting from 0")
        found = np.flatnonzero(mine & (self.columns["row"] == row))
        if len(found):
            return int(found[0])
        if len(rows) and row <= rows.max():
            raise InputError(
                f"Row {row} of the {side} was not audited: it stands on both sides, or was taken "
                "out with one that does; choose another row"
            )
        last = f"the last is row {int(rows.max())}" if len(rows) else "there are none"
        raise InputError(f"There is no row {row} of the {side}, counting from 0: {last}")

    def _standings(self, here: int, strongest: Json | None) -> tuple[Standing, ...]:
        """Each attack that was judged, the one that the verdict is about first."""
        seen = Counter[str]()
        found: list[tuple[bool, Standing]] = []
        for outcome in self.report["outcomes"]:
            seen[outcome["attack"]] += 1
            times = seen[outcome["attack"]]
            name = f"score_{outcome['attack']}" + ("" if times == 1 else f" ({times})")
            if name in self.columns:
                found.append((outcome is not strongest, self._standing(outcome, name, here)))
        return tuple(one for _, one in sorted(found, key=lambda pair: pair[0]))

    def _standing(self, outcome: Json, name: str, here: int) -> Standing:
        scores = self.columns[name].astype(np.float64)
        score = float(scores[here])
        rates = {rate["fpr"]: rate["resolved"] for rate in outcome["tpr_at_fpr"]}
        # A record is compared with others, not with itself.
        others = np.isfinite(scores) & (np.arange(len(scores)) != here)
        if not math.isfinite(score):
            blank = dict.fromkeys(rates)
            return Standing(outcome["attack"], outcome["channel"], None, 0, NONE, NONE, blank)
        inflation = 2.0 if outcome["knowledge"] == TAUGHT else 1.0
        strangers, members = others & ~self.membership, others & self.membership
        ordered = np.sort(scores[strangers])
        return Standing(
            outcome["attack"],
            outcome["channel"],
            score,
            len(ordered),
            share_at_least(score, scores[strangers], self._units(strangers), inflation),
            _below(share_at_least(score, scores[members], self._units(members), inflation)),
            {
                fpr: bool(score > cut_at(ordered, fpr)) if resolved and len(ordered) else None
                for fpr, resolved in rates.items()
            },
        )

    def _units(self, rows: NDArray[np.bool_]) -> NDArray[np.intp] | None:
        """The person of each of these rows, as a number."""
        unit = self.report["target"]["unit"]
        if unit is None or not rows.any():
            return None
        texts = self.columns[self.theirs[unit]][rows].astype(str)
        return np.asarray(np.unique(texts, return_inverse=True)[1], dtype=np.intp)

    def _groups(self, here: int, strongest: Json | None) -> tuple[Json, ...]:
        """What the strongest attack achieves on each group that the record belongs to."""
        return tuple(
            one
            for one in (() if strongest is None else strongest["groups"])
            if one["group"] in self.theirs
            and str(_plain(self.columns[self.theirs[one["group"]]][here])) == one["value"]
        )

    def _their_columns(self) -> dict[str, str]:
        """Under which name each group, and the unit, stands in the table.

        A name that is one of the table's own has given way there (see RecordTable.from_parts).
        """
        names = [one["group"] for outcome in self.report["outcomes"] for one in outcome["groups"]]
        unit = self.report["target"]["unit"]
        taken = {"row", "side", "label", "vulnerable", "leakage_nats"} & {*self.columns}
        taken |= {f"score_{outcome['attack']}" for outcome in self.report["outcomes"]}
        found: dict[str, str] = {}
        for name in dict.fromkeys([*names, *([] if unit is None else [unit])]):
            column = name
            while column in taken:
                column += "_"
            if column in self.columns:
                found[name] = column
                taken.add(column)
        return found


def _below(share: Interval) -> Interval:
    """The share that is lower, from the share that is as high or higher."""
    return Interval(1 - share.value, 1 - share.high, 1 - share.low)


def _plain(value: Any) -> Any:
    """A value of an array as JSON holds it."""
    return value.item() if isinstance(value, np.generic) else value
