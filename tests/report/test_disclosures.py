from __future__ import annotations

from typing import Any

from leakscope.report import disclosures as told

Json = dict[str, Any]


def test_each_extraction_is_a_sentence_for_a_privacy_officer(disclosures: list[Json]) -> None:
    assert told.in_words(disclosures) == [
        "An explanation of a person’s own prediction by 5 records shows a record that equals "
        "theirs, in every feature the model is given, to 20.0% of members (18.2% to 21.8%) and "
        "1.0% of non-members (0.5% to 1.5%). The difference of 19.0 percentage points (17.0 to "
        "21.0) is what asking about a person tells of whether they were in the training set. It "
        "does by 1 record to 10.0% of members and 0.5% of non-members; by 10 records to 27.0% of "
        "members and 1.5% of non-members. 20 of the 2,000 members equal another member in all of "
        "these features.",
        "Whoever holds the record of one member, and asks about it and about every record that is "
        "shown, reads 171 of the 2,000 training records (8.6%) in 171 queries, each explained by 5 "
        "records. From another start it would be 170 in the median. The explanations of members "
        "show 1,616 of them nowhere, so no walk does.",
        "Whoever asks about people who were not in the training set reads 374 of the 2,000 "
        "training records (18.7%) in 1,969 queries, each explained by 5 records.",
        "Whoever holds no record at all, and chooses queries by the answers, reads 130 of the "
        "2,000 training records (6.5%) in 10,000 queries, each explained by 1 record. The "
        "method itself counts 93 of them, where at most 93 can be found by it.",
        "Whoever holds no record at all, and chooses queries by the answers, reads 319 of the "
        "2,000 training records (16.0%) in 10,534 queries, each explained by 5 records. "
        "The method itself counts 207 of them, where at most 465 can be found by it.",
        "Each adversary could ask 100,000 queries at most.",
    ]


def test_what_is_not_known_is_not_said(disclosures: list[Json]) -> None:
    revealed, walk, _, reconstruction, _ = disclosures
    revealed |= {"groups": revealed["groups"][:1], "recovered": 200, "details": {}}
    walk["details"] = {}
    one, two, three, four = told.in_words([revealed, walk, {**reconstruction, "bound": None}])
    assert one.endswith("the model is given, to 10.0% of members (8.7% to 11.3%).")
    assert "by 1 record shows" in one
    assert three.endswith("each explained by 1 record.")
    assert four == "Each adversary could ask 100,000 queries at most."
    assert two.endswith("each explained by 5 records.")
    assert told.in_words([{**walk, "extraction": "a new one"}]) == []
    assert told.in_words([{**walk, "groups": []}]) == []
    assert told.in_words([]) == []


def test_shares_stand_under_their_column_and_the_size_of_the_explanation(
    disclosures: list[Json],
) -> None:
    sizes, columns = told.by_size(disclosures[0])
    assert sizes == [1, 5, 10]
    assert [(name, [row["value"] for row in rows]) for name, rows in columns] == [
        ("all", ["everyone", "non-members"]),
        ("sex", ["Female", "Male"]),
    ]
    everyone, others = columns[0][1]
    assert (everyone["n"], others["n"]) == (2000, 1969)
    assert [others["at"][k]["value"] for k in sizes] == [10 / 1969, 20 / 1969, 30 / 1969]
    female = columns[1][1][0]
    assert female["n"] == 700
    assert [female["at"][k]["value"] for k in sizes] == [50 / 700, 90 / 700, 120 / 700]
    del disclosures[0]["groups"][4]  # women at k = 5
    assert told.by_size(disclosures[0])[1][1][1][0]["at"][5] is None


def test_only_self_reveal_with_shares_is_about_those_who_are_shown(disclosures: list[Json]) -> None:
    assert told.revealed(disclosures) is disclosures[0]
    assert told.revealed(disclosures[1:]) is None
    assert told.revealed([{**disclosures[0], "groups": []}]) is None


def test_what_non_members_see_too_is_not_said_to_tell_of_membership(
    disclosures: list[Json],
) -> None:
    revealed = disclosures[0]
    others = revealed["details"]["others"][1]
    others |= {"excess": {"value": 0.004, "low": -0.012, "high": 0.02}}
    assert (
        "The difference of 0.4 percentage points (−1.2 to 2.0) is not surely above 0: being shown "
        "does not tell here who was in the training set."
    ) in told.in_words([revealed])[0]
    others["excess"]["low"] = 0.001
    assert "not surely" not in told.in_words([revealed])[0]


def test_distinct_records_are_told_where_more_people_see_them(disclosures: list[Json]) -> None:
    revealed = disclosures[0]
    for recovered, records in ((12, "12 distinct records"), (1, "1 distinct record")):
        said = told.in_words([{**revealed, "recovered": recovered}])[0]
        assert said.endswith(
            f"540 members are shown such a record by 10 records: {records} in all."
        )


def test_one_is_not_spoken_of_as_many(disclosures: list[Json]) -> None:
    walk = disclosures[1] | {"queries": 1, "details": {"budget": 1}}
    assert told.in_words([walk]) == [
        "Whoever holds the record of one member, and asks about it and about every record that is "
        "shown, reads 171 of the 2,000 training records (8.6%) in 1 query, each explained by 5 "
        "records.",
        "Each adversary could ask 1 query at most.",
    ]
