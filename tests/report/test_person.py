from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.metrics.intervals import Interval
from leakscope.metrics.standing import clopper_pearson, share_at_least
from leakscope.report import RecordTable, Report
from leakscope.report.advice import next_steps

N = 1200  # of each side: 1 % is resolved, 0.1 % is not
RNG = np.random.default_rng(1)
MEMBERS, OTHERS = RNG.normal(1.0, 1.0, N), RNG.normal(0.0, 1.0, N)
MEMBERS[17], OTHERS[5] = 9.0, 8.0  # above everybody
MEMBERS[18] = np.median(OTHERS)
LOSS = np.concatenate([MEMBERS, OTHERS])
NATS = RNG.uniform(0, 0.5, 2 * N)
SEX = np.where(np.arange(2 * N) % 3 == 0, "Female", "Male")


def make_table(**changed: Any) -> RecordTable:
    parts: dict[str, Any] = {
        "row": np.r_[np.arange(N), np.arange(N)],
        "side": np.repeat(["member", "nonmember"], N),
        "label": np.repeat([1, 0], N),
        "groups": {"sex": SEX},
        "scores": {"gradient-boosting": LOSS, "loss": -LOSS},
        "further": {"leakage_nats": NATS},
        "vulnerable": np.arange(2 * N) == 17,
    }
    return RecordTable.from_parts(**(parts | changed))


@pytest.fixture
def data(leak: dict[str, Any]) -> dict[str, Any]:
    """A report of a leak about so many records, with two attacks."""
    leak["target"] |= {"members": N, "nonmembers": N}
    leak["outcomes"] = [one for one in leak["outcomes"] if one["attack"] in ATTACKS]
    for one in leak["outcomes"]:
        for rate in one["tpr_at_fpr"]:
            rate["resolved"] = rate["fpr"] * N >= 5
    return leak


ATTACKS = ("gradient-boosting", "loss")


def strangers(scores: np.ndarray, but: int | None = None) -> np.ndarray:
    return np.delete(scores[N:], [] if but is None else but)


def test_a_member_above_everybody(data: dict[str, Any]) -> None:
    found = Report(data, make_table()).record(17)
    assert (found.row, found.side, found.label, found.unit) == (17, "members", 1, None)
    first, second = found.standings
    assert (first.attack, first.channel, first.score) == ("gradient-boosting", "probabilities", 9.0)
    # Taught by members: the number of records counts by half.
    assert first.false_alarms == clopper_pearson(0, N / 2)
    assert first.above_members.value == 1.0
    assert first.above_members.high == 1.0
    assert first.above_members.low == pytest.approx(
        1 - share_at_least(9.0, np.delete(MEMBERS, 17), None, 2.0).high
    )
    assert first.called == {0.001: None, 0.01: True, 0.05: True}
    assert second.false_alarms == clopper_pearson(N, N)
    assert second.called == {0.001: None, 0.01: False, 0.05: False}
    assert found.vulnerable
    assert found.singled_out == 1
    assert found.leakage == NATS[17]
    assert found.leakage_rank == (NATS[17] > NATS).mean()
    assert found.next_steps == tuple(next_steps(data))


def test_a_nonmember_is_compared_with_the_others(data: dict[str, Any]) -> None:
    found = Report(data, make_table()).record(5, "nonmembers")
    second = found.standings[1]
    assert (found.side, found.label, found.vulnerable) == ("nonmembers", 0, False)
    assert second.nonmembers == N - 1
    assert second.false_alarms == share_at_least(-8.0, strangers(-LOSS, 5))
    assert second.above_members.value == pytest.approx((-MEMBERS < -8.0).mean(), abs=1e-12)
    first = found.standings[0]
    assert first.called[0.01] is True  # and wrongly
    assert "names it a member, wrongly." in found.words[1]


@pytest.mark.parametrize("row", [0, 17, 18, 400, N - 1])
def test_being_called_agrees_with_the_share_of_non_members_above(
    data: dict[str, Any], row: int
) -> None:
    for side in ("members", "nonmembers"):
        for one in Report(data, make_table()).record(row, side).standings:
            for fpr, called in one.called.items():
                if called is not None:
                    assert called == (one.false_alarms.value <= fpr)


def test_groups_are_those_it_belongs_to(data: dict[str, Any]) -> None:
    report = Report(data, make_table())
    for row in (0, 1):
        (group,) = report.record(row).groups
        assert (group["group"], group["value"]) == ("sex", SEX[row])
        expected = data["outcomes"][0]["groups"]
        assert group == next(one for one in expected if one["value"] == SEX[row])


def test_the_attack_of_the_verdict_comes_first(data: dict[str, Any]) -> None:
    data["verdict"]["attack"] = "loss"
    found = Report(data, make_table()).record(17)
    assert [one.attack for one in found.standings] == ["loss", "gradient-boosting"]
    assert found.attack == "loss"


def test_words_say_it_all(data: dict[str, Any]) -> None:
    found = Report(data, make_table()).record(17)
    opening, first, second, several, nats, group, singled = found.words
    assert opening == (
        "This is record 17 of the members, counting from 0, with the label 1. The model leaks: "
        "attacks tell its members from others better than chance."
    )
    assert first == (
        "The attack gradient-boosting gives it 9, higher than 100.0% of the 1,200 non-members (95% "
        "interval 99.4% to 100.0%) and than 100.0% of the other members: whoever accepts a false "
        "alarm about 1 in 100 non-members names it a member, rightly."
    )
    assert second.startswith("The attack loss gives it −9, higher than 0.0% of the 1,200 non-")
    assert second.endswith("than 1 in 20 does not name it a member.")
    assert "Among 2 attacks some place any record high by chance" in several
    assert f"tells {NATS[17]:.3f} nats" in nats
    assert f"more than they tell of {100 * found.leakage_rank:.1f}% of all records" in nats
    assert group.startswith("It belongs to sex = Male, on which gradient-boosting has an advantage")
    assert singled == (
        "gradient-boosting singles out 1 of 1,200 members while it accuses hardly any non-member, "
        "and this record is among them."
    )
    assert str(found) == "\n".join(found.words)


def test_words_of_one_who_is_not_found(data: dict[str, Any]) -> None:
    report = Report(data, make_table())
    assert report.record(18).words[-1].endswith("and this record is not among them.")
    other = report.record(7, "nonmembers").words
    assert "1,199 other non-members" in other[1]
    assert "of the members: whoever" in other[1]
    assert other[1].endswith("does not name it a member, rightly.")
    assert "singles" not in other[-1]


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("invalid", "The audit is invalid, because a check of itself failed"),
        ("undecided", "No attack was shown to tell members from others"),
        ("no_leak_found", "No attack was shown to tell members from others"),
    ],
)
def test_words_say_how_far_the_figures_can_be_trusted(
    data: dict[str, Any], level: str, said: str
) -> None:
    data["verdict"]["level"] = level
    assert said in Report(data, make_table()).record(0).words[0]


def test_an_audit_without_attacks_still_knows_the_record(data: dict[str, Any]) -> None:
    data["outcomes"] = []
    found = Report(data, make_table(scores={}, further=None, vulnerable=[False] * 2 * N)).record(3)
    assert found.standings == found.groups == ()
    assert found.attack is None
    assert math.isnan(found.leakage)
    assert len(found.words) == 1
    assert found.to_dict()["leakage"] is None


def test_a_score_that_is_missing_is_said_so(data: dict[str, Any]) -> None:
    scores = LOSS.copy()
    scores[[3, N, N + 1]] = np.nan
    table = make_table(scores={"gradient-boosting": scores, "loss": -LOSS})
    found = Report(data, table).record(3)
    assert found.standings[0].score is None
    assert found.standings[0].called == dict.fromkeys((0.001, 0.01, 0.05))
    assert found.words[1] == "The attack gradient-boosting has no score for it."
    assert not any("Among" in one for one in found.words)  # one attack is left
    other = Report(data, table).record(4).standings[0]
    assert other.nonmembers == N - 2
    assert other.false_alarms == share_at_least(scores[4], scores[N + 2 :], None, 2.0)


def test_one_whom_nobody_can_be_compared_with(data: dict[str, Any]) -> None:
    alone = np.full(2 * N, np.nan)
    alone[3] = 1.0
    found = Report(data, make_table(scores={"loss": alone})).record(3)
    assert found.words[1] == "The attack loss gives it 1, and nobody else a score."
    assert found.standings[0].called[0.05] is None
    json.dumps(found.to_dict(), allow_nan=False)
    alone[N:] = 0.0
    assert (
        "of the other members"
        not in Report(data, make_table(scores={"loss": alone})).record(3).words[1]
    )


def test_with_too_few_non_members_nothing_is_said_of_rates(data: dict[str, Any]) -> None:
    for one in data["outcomes"]:
        for rate in one["tpr_at_fpr"]:
            rate["resolved"] = False
    assert "too few non-members to say whether" in Report(data, make_table()).record(17).words[1]


def test_a_group_too_small_for_a_figure(data: dict[str, Any]) -> None:
    for one in data["outcomes"][0]["groups"]:
        one["advantage"] = {"value": None, "low": None, "high": None}
    words = Report(data, make_table()).record(0).words
    assert "It belongs to sex = Female, too small a group to say more." in words


def test_rows_of_one_person_count_together(data: dict[str, Any]) -> None:
    person = np.r_[np.arange(N) // 4, N + np.arange(N) // 4]
    data["target"] |= {"unit": "patient", "units": {"members": N // 4, "nonmembers": N // 4}}
    scores = np.repeat(LOSS[::4], 4)
    table = make_table(scores={"loss": scores}, unit=("patient", person))
    found = Report(data, table).record(6)
    assert found.unit == 1
    (one,) = found.standings
    assert one.false_alarms == share_at_least(scores[6], scores[N:], person[N:] - N)
    alone = share_at_least(scores[6], scores[N:])
    assert one.false_alarms.low < alone.low < alone.high < one.false_alarms.high
    assert found.to_dict()["unit"] == 1


def test_two_outcomes_of_one_name_keep_their_own_columns(data: dict[str, Any]) -> None:
    twin = copy.deepcopy(data["outcomes"][1])
    data["outcomes"] = [data["outcomes"][1], twin]
    data["verdict"]["attack"] = "loss"
    table = make_table(scores={"loss": LOSS, "loss (2)": -LOSS})
    first, second = Report(data, table).record(17).standings
    assert (first.score, second.score) == (9.0, -9.0)


def test_names_that_gave_way_in_the_table_are_found(data: dict[str, Any]) -> None:
    for one in data["outcomes"]:
        for group in one["groups"]:
            group["group"] = {"sex": "row", "age": "row_"}.get(group["group"], group["group"])
    age = np.full(2 * N, "17–29")
    data["target"] |= {"unit": "label", "units": {"members": N, "nonmembers": N}}
    table = make_table(groups={"row": SEX, "row_": age}, unit=("label", np.arange(2 * N)))
    found = Report(data, table).record(2)
    assert [(one["group"], one["value"]) for one in found.groups] == [
        ("row", "Male"),
        ("row_", "17–29"),
    ]
    assert found.unit == 2


def test_json_has_every_figure(data: dict[str, Any]) -> None:
    found = Report(data, make_table()).record(17)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(told) == {
        "row", "side", "label", "unit", "verdict", "attack", "attacks", "leakage", "groups",
        "vulnerable", "words", "next_steps",
    }  # fmt: skip
    assert told["verdict"] == "leaks"
    assert told["words"] == found.words
    assert told["leakage"] == {"nats": NATS[17], "above": found.leakage_rank}
    one = told["attacks"][0]
    assert one["false_alarms"] == found.standings[0].false_alarms.to_dict()
    assert one["called"][1] == {"fpr": 0.01, "called": True}
    assert isinstance(found.standings[0].above_members, Interval)


def test_a_saved_run_says_the_same(data: dict[str, Any], tmp_path: Path) -> None:
    report = Report(data, make_table())
    report.save(tmp_path)
    for path in (tmp_path, tmp_path / "report.json"):
        loaded = Report.load(path, records=True)
        for row, side in ((17, "members"), (5, "nonmembers")):
            here, there = (one.record(row, side).to_dict() for one in (report, loaded))
            assert str(here.pop("label")) == there.pop("label")
            assert here == there


def test_a_row_beyond_the_end_is_refused(data: dict[str, Any]) -> None:
    report = Report(data, make_table())
    with pytest.raises(InputError) as caught:
        report.record(N)
    assert str(caught.value) == (
        f"There is no row {N} of the members, counting from 0: the last is row {N - 1}"
    )


def test_a_row_that_was_taken_out_is_said_so(data: dict[str, Any]) -> None:
    rows = np.r_[np.arange(1, N + 1), np.arange(N)]
    with pytest.raises(InputError, match="Row 0 of the members was not audited: it stands on both"):
        Report(data, make_table(row=rows)).record(0)


def test_a_side_without_records_has_no_rows(data: dict[str, Any]) -> None:
    data["target"] |= {"members": 2 * N, "nonmembers": 0}
    table = make_table(side=["member"] * 2 * N)
    with pytest.raises(InputError, match="no row 0 of the nonmembers, counting from 0: there are"):
        Report(data, table).record(0, "nonmembers")


@pytest.mark.parametrize("row", [-1, 1.5, True, "1", None])
def test_a_row_is_a_whole_number(data: dict[str, Any], row: Any) -> None:
    with pytest.raises(InputError, match="give a whole number, counting from 0"):
        Report(data, make_table()).record(row)


def test_there_are_two_sides(data: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="The side is 'member'; choose members or nonmembers"):
        Report(data, make_table()).record(0, "member")


def test_a_report_without_records_says_how_to_have_them(data: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"load it with Report\.load\(folder, records=True\)"):
        Report(data).record(0)
    with pytest.raises(InputError, match="is redacted and tells of no single record"):
        Report(data, make_table()).redacted().record(0)


def test_a_table_of_another_run_is_refused(data: dict[str, Any]) -> None:
    data["target"]["members"] = N + 1
    with pytest.raises(InputError, match=r"1,200 members and 1,200 non-members where .* 1,201"):
        Report(data, make_table()).record(0)
