from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from leakscope.report.disclosure_plots import exposed, reading
from leakscope.report.plots import Row
from leakscope.report.words import clean, shorten

SVG = "{http://www.w3.org/2000/svg}"
Json = dict[str, Any]


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(SVG + "text")]


def title(svg: str) -> str:
    return ElementTree.fromstring(svg).findtext(SVG + "title") or ""


def test_every_line_is_named_in_the_picture_and_in_words(disclosures: list[Json]) -> None:
    for narrow in (False, True):
        svg = reading(disclosures[1:], "reading", narrow)
        assert {"traversal, 5 records", "static, 5 records"} <= set(texts(svg))
        assert title(svg) == (
            "Training records shown against queries asked. traversal, 5 records: 171 after 171 "
            "queries; static, 5 records: 374 after 1,969 queries; reconstruction, 1 record: 130 "
            "after 10,000 queries; reconstruction, 5 records: 319 after 10,534 queries."
        )
        assert "10,000" in texts(svg)


def test_a_fifth_line_is_left_to_the_table(disclosures: list[Json]) -> None:
    assert "10,534" not in title(reading(disclosures, "reading"))


def test_an_extraction_that_asked_nothing_is_an_empty_line(disclosures: list[Json]) -> None:
    one = disclosures[1] | {"queries": 0, "shown": 0, "curve": {"queries": [0], "shown": [0]}}
    assert "0 after 0 queries" in title(reading([one], "reading"))
    assert "2 after 1 query." in title(reading([one | {"queries": 1, "shown": 2}], "reading"))


def rows(disclosures: list[Json]) -> list[Row]:
    everyone, *groups = [one for one in disclosures[0]["groups"] if one["k"] == 5]
    named = [Row(one["value"], one["share"]) for one in groups]
    return [Row(everyone["value"], everyone["share"], strong=True), Row("sex"), *named]


def test_shares_are_told_in_words_too(disclosures: list[Json]) -> None:
    for narrow in (False, True):
        svg = exposed(rows(disclosures), 5, "exposed", narrow)
        assert title(svg) == (
            "Members shown a record equal to theirs: everyone 20.0% (18.2% to 21.8%); Female 12.9% "
            "(10.4% to 15.3%); Male 23.8% (21.5% to 26.2%)."
        )
        assert {"everyone", "sex", "Female", "Male"} <= set(texts(svg))
        assert "shown a record equal to theirs, of 5" in texts(svg)


def test_a_wider_interval_is_drawn_wider(disclosures: list[Json]) -> None:
    svg = exposed(rows(disclosures), 5, "exposed")
    lines = re.findall(
        r'd="M ([\d.]+) [\d.]+ L ([\d.]+) [\d.]+"[^>]*stroke-width: (?:1.6|2.6)', svg
    )
    widths = [float(right) - float(left) for left, right in lines]
    assert len(widths) == 3
    assert widths[1] > widths[2] > widths[0]


def test_shares_of_nobody_leave_room(disclosures: list[Json]) -> None:
    nobody = {"value": 0.0, "low": None, "high": None}
    assert "everyone 0.0% (interval unknown)" in title(exposed([Row("everyone", nobody)], 5, "e"))


def test_labels_of_data_are_text_and_nothing_else(
    disclosures: list[Json], hostile_texts: tuple[str, ...]
) -> None:
    share = disclosures[0]["groups"][0]["share"]
    svg = exposed([Row(text, share) for text in hostile_texts], 5, "exposed")
    for text in hostile_texts:
        assert shorten(text, 24) in texts(svg)
        assert clean(text) in title(svg)
