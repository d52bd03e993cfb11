from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

from leakscope.report.plots import Allowed, Row, Scale, forest, histogram, leakage, roc
from leakscope.report.svg import canvas, finish
from leakscope.report.words import clean, shorten

LIMIT = Scale.of_advantages(0.1)
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(SVG + "text")]


def title(svg: str) -> str:
    return ElementTree.fromstring(svg).findtext(SVG + "title") or ""


def elements(svg: str) -> set[str]:
    return {one.tag.removeprefix(SVG) for one in ElementTree.fromstring(svg).iter()}


DRAWN = {"svg", "title", "g", "path", "defs", "use", "clipPath", "rect", "text"}


def draw(leak: dict[str, Any]) -> list[str]:
    outcomes = leak["outcomes"]
    rows = [Row("sex"), *(Row(one["attack"], one["advantage"]) for one in outcomes)]
    return [
        roc(outcomes, outcomes[0], 1985),
        histogram(outcomes[0]),
        forest(rows, LIMIT, "wide", "by attack"),
        forest(rows, LIMIT, "narrow", "by attack", narrow=True),
    ]


@pytest.mark.slow
def test_every_figure_is_well_formed_and_has_a_text_alternative(leak: dict[str, Any]) -> None:
    for svg in draw(leak):
        root = ElementTree.fromstring(svg)
        assert root.tag == SVG + "svg"
        assert root.get("role") == "img"
        assert root[0].get("id") == root.get("aria-labelledby")
        assert len(title(svg)) > 40
        assert "metadata" not in svg
        assert "<style" not in svg


def test_the_alternatives_hold_the_numbers(leak: dict[str, Any]) -> None:
    curve, bars, wide, narrow = draw(leak)
    assert "finds 9.2% of members (7.3% to 11.1%) while accusing 1 in 100" in title(curve)
    assert "1 in 1,000" not in title(curve)
    assert "most often 0.75 to 1 for members" in title(bars)
    assert "gradient-boosting 0.383 (0.352 to 0.414); modified-entropy" in title(wide)
    assert title(wide) == title(narrow)


def test_the_same_input_gives_the_same_bytes(leak: dict[str, Any]) -> None:
    assert draw(leak) == draw(leak)


def test_neither_the_users_style_nor_ours_reaches_the_other(leak: dict[str, Any]) -> None:
    before = draw(leak)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        changed = dict(matplotlib.rcParams)
        assert draw(leak) == before
        assert dict(matplotlib.rcParams) == changed


def test_labels_of_data_are_text_and_nothing_else(
    leak: dict[str, Any], hostile_texts: tuple[str, ...]
) -> None:
    advantage = leak["outcomes"][0]["advantage"]
    rows = [Row(text, advantage, strong=True) for text in hostile_texts]
    rows += [Row(text) for text in hostile_texts]
    for narrow, width in ((False, 24), (True, 38)):
        svg = forest(rows, LIMIT, "f", hostile_texts[0], narrow=narrow)
        assert elements(svg) <= DRAWN
        for text in hostile_texts:
            assert texts(svg).count(shorten(text, width)) == 2
        assert all(clean(text) in title(svg) for text in hostile_texts)


@pytest.mark.slow
def test_the_name_of_an_attack_is_text_and_nothing_else(
    leak: dict[str, Any], hostile_texts: tuple[str, ...]
) -> None:
    for text in hostile_texts:
        one = leak["outcomes"][0] | {"attack": text}
        curve, bars = roc([one], one, 1985), histogram(one)
        assert elements(curve) | elements(bars) <= DRAWN
        assert shorten(text, 24).lstrip("_") in texts(curve)
        assert clean(text) in title(curve)
        assert clean(text) in title(bars)


def test_the_shade_covers_every_rate_that_cannot_be_told(leak: dict[str, Any]) -> None:
    def edge(nonmembers: int) -> float:
        """Right edge of the shaded region, as a share of the axes' width."""
        svg = roc([one], one, nonmembers)
        shade = re.search(r'd="([^"]*)"[^>]*fill: var\(--shade', svg)
        assert shade
        right = max(float(x) for x in re.findall(r"([\d.]+) [\d.]+", shade[1]))
        return (right - 58) / (400 - 58 - 22)

    one = leak["outcomes"][0]
    for rate in one["tpr_at_fpr"]:
        rate["resolved"] = True
    # Five of 1,000 on an axis from 1/1,000 to 1: log 5 / log 1,000.
    assert edge(1000) == pytest.approx(0.699 / 3, abs=1e-3)
    one["tpr_at_fpr"][1]["resolved"] = False
    assert edge(1000) == pytest.approx(1 / 3, abs=1e-3)
    assert edge(0) == pytest.approx(1)


def test_rates_that_are_unknown_or_unresolved_are_not_drawn(leak: dict[str, Any]) -> None:
    one = leak["outcomes"][0]
    dots = roc([one], one, 1985).count("<use")
    one["tpr_at_fpr"][1]["value"] = None
    assert roc([one], one, 1985).count("<use") == dots - 1
    for rate in one["tpr_at_fpr"]:
        rate["resolved"] = False
    assert "enough non-members to say" in title(roc([one], one, 1985))


def test_the_threshold_is_drawn_where_it_is_within_the_scores(leak: dict[str, Any]) -> None:
    one = leak["outcomes"][0]
    assert "called members from here" in texts(histogram(one))
    for value in (None, 99.0):
        one["threshold"]["value"] = value
        assert "called members from here" not in texts(histogram(one))


def test_scores_that_are_all_the_same_can_be_drawn(leak: dict[str, Any]) -> None:
    one = leak["outcomes"][0]
    one["histogram"] = {"edges": [0.5, 0.5], "members": [1.0], "nonmembers": [1.0]}
    assert "most often 0.5 to 0.5" in title(histogram(one))


def test_a_forest_plot_holds_what_it_is_given() -> None:
    known = {"value": 0.2, "low": 0.1, "high": 0.3}
    without_ends = {"value": 0.2, "low": None, "high": None}
    nothing = {"value": None, "low": None, "high": None}
    rows = [Row("one", known, True), Row("two", without_ends), Row("three", nothing), Row("head")]
    svg = forest(rows, LIMIT, "f", "here")
    assert {"one", "two", "three", "head", "guessing", "limit 0.1"} <= set(texts(svg))
    assert "three unknown (interval unknown)" in title(svg)
    # A diamond and its interval for the first; a dot for the second; nothing for the others.
    ticks = forest(
        [Row("three", nothing), Row("head")], Scale.of_advantages(0.3), "f", "here"
    ).count("<use")
    assert svg.count("<use") == ticks + 2


def test_a_forest_plot_of_nothing_known_has_an_axis() -> None:
    nothing = {"value": None, "low": None, "high": None}
    assert "0" in texts(forest([Row("one", nothing)], Scale.of_advantages(0.0), "f", "here"))


def test_names_and_references_bear_the_name_of_the_figure() -> None:
    with canvas(100, 100, left=10, bottom=10) as (figure, axes):
        axes.plot([0, 1], [0, 1])
        svg = finish(figure, "mine", "A line\x00.")
    assert title(svg) == "A line�."
    ids = re.findall(r' id="([^"]+)"', svg)
    assert ids
    assert all(one.startswith("mine-") for one in ids)
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', svg)) == set(ids) - {"mine-title"}


def test_a_curve_promises_no_rate_that_no_threshold_gives(leak: dict[str, Any]) -> None:
    # Half of the records are tied: accusing at most 99 of 100 still finds only a tenth of members.
    one = leak["outcomes"][0] | {"curve": {"fpr": [0.01, 1.0], "tpr": [0.1, 1.0]}}
    (path,) = re.findall(r'd="([^"]*)" clip-path[^>]*stroke: var\(--member', roc([one], one, 100))
    points = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]
    assert len(points) == 3
    assert points[0][1] == points[1][1] > points[2][1]
    assert points[0][0] < points[1][0] == points[2][0]


BEST = {"attack": "lira", "advantage": {"value": 0.3, "low": -0.1, "high": 0.4}}


def test_leakage_and_the_best_attack_share_one_axis() -> None:
    rows = [
        Allowed("allowed by: Information", {"value": 0.5, "low": 0.4, "high": 0.6}, 0.1),
        Allowed("allowed by: Divergence", {"value": 1.0, "low": None, "high": None}, None),
    ]
    for narrow in (False, True):
        svg = leakage(rows, BEST, "l", narrow=narrow)
        assert elements(svg) <= DRAWN
        assert {"allowed by: Information", "allowed by: Divergence", "achieved: lira"} <= set(
            texts(svg)
        )
        assert {"0.0", "0.2", "1.0"} <= set(texts(svg))
        assert "Information 0.500 (0.400 to 0.600), by chance up to 0.100" in title(svg)
        assert "Divergence 1.000 (interval unknown), by chance up to unknown" in title(svg)
        assert "lira, achieves 0.300 (−0.100 to 0.400)" in title(svg)
    # A tick for what shuffling gives, at a tenth of the axis from 0 to 1.
    (path,) = re.findall(r'd="([^"]*)"[^>]*stroke: var\(--soft[^>]*stroke-width: 2.4', svg)
    places = [float(one) for one in re.findall(r"([\d.]+) [\d.]+", path)]
    left, right = 12, 360 - 16
    place = left + (right - left) * (0.1 + 0.12) / (1.02 + 0.12)
    assert places == pytest.approx([place, place], abs=0.01)


def test_leakage_can_be_drawn_without_an_attack(hostile_texts: tuple[str, ...]) -> None:
    known = {"value": 0.5, "low": 0.4, "high": 0.6}
    svg = leakage([Allowed(text, known, 0.0) for text in hostile_texts], None, "l")
    assert elements(svg) <= DRAWN
    assert all(clean(text) in title(svg) for text in hostile_texts)
    assert "attack" not in title(svg).replace(clean(" ".join(hostile_texts)), "")


def test_a_scale_without_a_limit_names_its_zero_alone() -> None:
    rows = [Row("one", {"value": 0.1, "low": -0.1, "high": 0.3})]
    svg = forest(rows, Scale("increase", "as before"), "f", "Increase")
    assert {"increase", "as before"} <= set(texts(svg))
    assert not any("limit" in text for text in texts(svg))
    assert title(svg) == "Increase: one 0.100 (−0.100 to 0.300)."
