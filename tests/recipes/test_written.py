from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from leakscope.recipes.written import WAYS, as_texts, is_gap, read_column, way_of

DAY = 18627.0  # 2020-12-31, counted by hand: 50 years of 365 days, 13 leap days, less one


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,234.5", "-17", "1e3"], [1234.5, -17, 1000]),
        (["1,234,567", "999"], [1234567, 999]),
        (["1'234.5", "7"], [1234.5, 7]),
        (["1 234", "12\u00a0345.25"], [1234, 12345.25]),
        ([" 3.5 ", "4 "], [3.5, 4]),
        (["$1,200.50", "$7"], [1200.5, 7]),
        (["12 €", "7%"], [12, 7]),
        ([".5", "0.25", "+2."], [0.5, 0.25, 2]),
        (["12,5", "3,25"], [12.5, 3.25]),
        (["1.234,5", "1.000"], [1234.5, 1000]),
        (["?", "3", "n.a."], [math.nan, 3, math.nan]),
        (["Unknown", "-", "0"], [math.nan, math.nan, 0]),
        (["2020-12-31", "1970-01-02"], [DAY, 1]),
        (["2020-12-31T12:00:00Z", "2020-12-31 00:00"], [DAY + 0.5, DAY]),
        (["2020-12-31T12:00:00+06:00"], [DAY + 0.25]),
        (["31.12.2020", "2.1.1970", "?"], [DAY, 1, math.nan]),
        (["31.12.2020 06:00", "02.01.1970 12:00"], [DAY + 0.25, 1.5]),
        (["12/31/2020", "1/2/1970"], [DAY, 1]),
        (["31/12/2020", "2/1/1970"], [DAY, 1]),
        (["1/2/1970"], [1]),  # the month is first unless a day forbids it
        (["2020/12/31"], [DAY]),
        (["31-12-2020"], [DAY]),
        (["31 Dec 2020"], [DAY]),
        (["Dec 31, 2020"], [DAY]),
        (["2020.12.31", "1970.01.02"], [DAY, 1]),
        (["9999-12-31", "1601-01-01", "?"], [2932896, -134774, math.nan]),
        (["0001-01-01T12:00:00"], [-719161.5]),
        (["31.12.9999", "1.1.1601"], [2932896, -134774]),
        (["٣", "١٢"], [3, 12]),
        (["1e40", "2.5"], [1e40, 2.5]),
    ],
)
def test_what_people_write_is_read(texts: list[str], values: list[float]) -> None:
    way = way_of(texts)
    assert way is not None
    np.testing.assert_allclose(read_column(pd.Series(texts), way), values)


@pytest.mark.parametrize(
    "texts",
    [
        ["1,234.5", "many"],
        ["12,34,5"],
        ["1,23", "1,234.5"],
        ["007", "008"],  # codes, whose zeros count
        ["a1", "a2"],
        ["1-2", "3-4"],
        ["2020-12-31", "31.12.2020"],
        ["2020-13-31"],
        ["31.02.2020"],
        ["?", "-"],
        ["1 2", "3 4"],
        ["--5", "5-"],
        ["$"],
        ["e5"],
        ["low", "-1.5"],
        ["2020-12-31", "-1.5"],  # which pandas reads as May of the year -1
        ["2020-12-31", "20.5"],
        ["12345-01-01"],
        ["9" * 26, "x1"],
        ["9" * 26, "1,000"],  # names, of which floats would make one
        ["9" * 5000],
    ],
)
def test_all_else_stays_text(texts: list[str]) -> None:
    assert way_of(texts) is None


def test_an_example_is_written_in_its_own_way() -> None:
    for way in WAYS:
        time = " 12:30:00" if getattr(way, "format", "").endswith("%S") else ""
        time = " 12:30" if getattr(way, "format", "").endswith("%M") else time
        found = way_of([way.example + time])
        assert found is not None
        assert (found.kind, found.example) == (way.kind, way.example)


def test_all_values_are_looked_at_and_not_the_first_alone() -> None:
    assert way_of([str(number) for number in range(500)]) is not None
    assert way_of([*(str(number) for number in range(500)), "many"]) is None


@pytest.mark.parametrize("text", ["", " ", "?", "NA", "n.a.", "None", "–", " missing "])
def test_gaps(text: str) -> None:
    assert is_gap(text)


@pytest.mark.parametrize("text", ["0", "no", "n", "nothing"])
def test_no_gaps(text: str) -> None:
    assert not is_gap(text)


def test_numbers_of_one_file_are_the_texts_of_another() -> None:
    column = pd.Series([2.0, None, 2.5, "a", 3, True], dtype=object)
    assert as_texts(column).tolist() == ["2", None, "2.5", "a", "3", "True"]
