from __future__ import annotations

from typing import Any

from leakscope.report import disclosures as told

Json = dict[str, Any]


def test_each_extraction_is_a_sentence_for_a_privacy_officer(disclosures: list[Json]) -> None:
    assert told.in_words(disclosures) == [
        "An explanation of a member’s own prediction by 5 records shows that very record for 20.0% "
        "of members (18.2% to 21.8%): asking about a person tells that they were in the training "
        "set. It does by 1 record for 10.0%, by 10 records for 27.0%.",
        "Whoever holds the record of one member, and asks about it and about every record that is "
        "shown, reads 171 of the 2,000 training records (8.6%) in 171 queries, each explained by 5 "
        "records. From another start it would be 172 in the median. The explanations of members "
        "show 1,616 of them nowhere, so no walk does.",
        "Whoever asks about people who were not in the training set reads 374 of the 2,000 "
        "training records (18.7%) in 1,969 queries, each explained by 5 records.",
        "Whoever holds no record at all, and chooses queries by the answers, reads 130 of the "
        "2,000 training records (6.5%) in 10,000 queries, each explained by 1 record.",
        "Whoever holds no record at all, and chooses queries by the answers, reads 319 of the "
        "2,000 training records (16.0%) in 10,534 queries, each explained by 5 records.",
        "Each adversary could ask 100,000 queries at most.",
    ]


def test_what_is_not_known_is_not_said(disclosures: list[Json]) -> None:
    revealed, walk, *_ = disclosures
    revealed["groups"] = revealed["groups"][:1]
    walk["details"] = {}
    one, two = told.in_words([{**revealed, "details": {}}, walk])
    assert one.endswith("in the training set.")
    assert "by 1 record shows" in one
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
        ("all", ["everyone"]),
        ("sex", ["Female", "Male"]),
    ]
    female = columns[1][1][0]
    assert female["n"] == 700
    assert [female["at"][k]["value"] for k in sizes] == [50 / 700, 90 / 700, 120 / 700]
    del disclosures[0]["groups"][4]  # women at k = 5
    assert told.by_size(disclosures[0])[1][1][1][0]["at"][5] is None


def test_only_self_reveal_with_shares_is_about_those_who_are_shown(disclosures: list[Json]) -> None:
    assert told.revealed(disclosures) is disclosures[0]
    assert told.revealed(disclosures[1:]) is None
    assert told.revealed([{**disclosures[0], "groups": []}]) is None
