from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import jinja2
import pytest

from leakscope.report import Report
from leakscope.report.html import render
from leakscope.report.words import clean

VOID = {"meta", "br", "circle", "path"}
ADDRESSES = {"src", "href", "action", "formaction", "poster", "srcset", "data", "background"}


class Page(HTMLParser):
    """The elements, attributes and texts of a page, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.style = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.style += data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


ALLOWED = re.compile(
    "html|head|meta|title|style|body|header|main|footer|article|section|h[1-3]|p|span|div|ol|li|dl"
    "|dt|dd|table|caption|thead|tbody|tr|th|td|small|b|br|pre|code|figure|figcaption"
    "|svg|g|path|circle|defs|use|clippath|rect|text"
)


def test_nothing_on_a_page_can_run_or_reach_the_network(mixed: dict[str, Any]) -> None:
    page = Page(Report(mixed).to_html())
    assert not [tag for tag, _ in page.elements if not ALLOWED.fullmatch(tag)]
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ADDRESSES & set(attributes):
            assert attributes[name].startswith("#")
        style = attributes.get("style", "") + attributes.get("clip-path", "")
        assert not re.search(r"url\((?!#)|expression|@import", style)
    assert not re.search(r"url\(|@import|http", page.style)
    policy = [one["content"] for one in page.named("meta") if "http-equiv" in one]
    assert policy == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    ]


@pytest.mark.slow
def test_hostile_text_is_shown_as_it_is(
    mixed: dict[str, Any], hostile_texts: tuple[str, ...]
) -> None:
    html = Report(mixed).to_html()
    page = Page(html)
    for text in hostile_texts:
        shown = " ".join(clean(text.encode("utf-8", "replace").decode()).split())
        assert page.text.count(shown) >= 3, text
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", html)


@pytest.mark.slow
def test_the_figures_of_a_page_are_well_formed_and_share_no_name(mixed: dict[str, Any]) -> None:
    html = Report(mixed).to_html()
    figures = re.findall(r"<svg xmlns.*?</svg>", html, flags=re.DOTALL)
    assert len(figures) == 14
    for one in figures:
        ElementTree.fromstring(one)
    page = Page(html)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    for _, attributes in page.elements:
        for name in attributes.get("aria-labelledby", "").split():
            assert name in names
        links = attributes.get("href", "") + attributes.get("clip-path", "")
        for name in re.findall(r"#([^)]+)", links):
            assert name in names


@pytest.mark.slow
def test_the_same_report_gives_the_same_bytes(leak: dict[str, Any]) -> None:
    assert render(leak) == render(Report(leak).to_dict())


def sections(html: str) -> list[str]:
    return [re.sub(r"\s+", " ", one) for one in re.findall(r"<h2[^>]*>(.*?)</h2>", html, re.DOTALL)]


def test_the_verdict_comes_first_and_everything_else_in_its_order(leak: dict[str, Any]) -> None:
    html = render(leak)
    assert html.startswith("<!DOCTYPE html>\n<html lang=")
    assert sections(html) == [
        "What this means",
        "What to do next",
        "What an adversary can do, and how sure that is",
        "Every attack that was tried",
        "How the attack tells them apart",
        "Who is most at risk",
        "Can this audit be trusted?",
        "What was not run, and why",
        "How to read this page",
        "What was audited",
        "How to repeat it",
    ]
    assert html.index(leak["verdict"]["headline"]) < html.index("What this means")


def test_a_reader_of_the_page_learns_what_the_report_holds(leak: dict[str, Any]) -> None:
    text = Page(render(leak)).text
    for piece in (
        "Leaks",
        leak["verdict"]["headline"],
        leak["verdict"]["reason"],
        "Of 100 members and 100 non-members, gradient-boosting is right about 138 of 200",
        "while falsely accusing 1 in 100 non-members (with 95% confidence, 7.3% to 11.1%)",
        "ε ≥ 0.83",
        "at δ = 10⁻⁵, with 95% confidence (method: one-run)",
        "0.383 0.352 to 0.414",
        "0.760 0.742 to 0.778",
        "< 0.001",
        "the advantage is surely larger than on everyone else for age: 45–59, by 0.16",
        "15 of 2000 non-members",
        "It needs a model that predicts numbers, and this one predicts classes.",
        "98.1% (97.5% to 98.7%)",
        "12 records with a probability nearer than 1e-7 to 0 or 1",
        "leakscope audit --dataset adult --seed 0 --out run/",
        "Seed 0.",
        "15 November 2026, 20:00 UTC",
        "Yeom et al. 2018, section 3.2",
        "Sees: loss. Knows: average training loss. Threshold: average training loss.",
    ):
        assert piece in text, piece


@pytest.mark.slow
def test_each_level_says_what_it_means(make_report: Callable[[str], dict[str, Any]]) -> None:
    expected = {
        "leaks": "Chance does not explain it, even after allowing for the 6 attacks tried.",
        "no_leak_found": "None of the 6 attacks tried found a leak",
        "undecided": "Audit again with about 770 records on each side; "
        "this audit had 240 members and 239 non-members.",
        "invalid": "Quote no figure of this one.",
    }
    for level, sentence in expected.items():
        page = Page(render(make_report(level)))
        assert sentence in page.text
        assert page.named("body") == [{"class": level}]
        # Only a leak is drawn as dots beyond guessing.
        assert ("right beyond guessing" in page.text) == (level == "leaks")


def test_an_audit_without_outcomes_has_no_figures(
    make_report: Callable[[str], dict[str, Any]],
) -> None:
    html = render(make_report("invalid"))
    assert "No attack was scored" in html
    assert "<svg xmlns" not in html
    assert "Who is most at risk" not in sections(html)


def test_figures_of_an_invalid_audit_are_marked_as_such(leak: dict[str, Any]) -> None:
    leak["controls"][2] |= {"passed": False, "detail": "The sides differ."}
    leak["controls"][0] |= {"passed": False, "detail": "The sides overlap."}
    leak["verdict"] |= {"level": "invalid", "attack": None, "reason": "The sides differ."}
    html = render(leak)
    assert "do not rely on these figures" in html
    # The other failure stands beside the verdict; the verdict's own is not said twice there.
    top = html[: html.index("What to do next")]
    assert top.count("The sides overlap.") == top.count("The sides differ.") == 1


def test_a_regression_has_errors_in_place_of_accuracies(regression: dict[str, Any]) -> None:
    text = Page(render(regression)).text
    assert "Error on members 31.52 (root mean square)" in text
    assert "Error on non-members 58.07 (root mean square)" in text
    assert "Accuracy on members" not in text
    assert "240 records of 180 units (patient_nbr)" in text
    assert "No groups were named" in text
    assert "Chance did not decide who is a member" in text


def test_what_is_empty_or_unknown_is_said(leak: dict[str, Any]) -> None:
    leak["not_run"], leak["controls"], leak["seed"] = [], [], None
    leak["target"] |= {"dataset": None, "features": None, "missing_values": 3, "clipped": 0}
    for one in leak["outcomes"]:
        one["curve"] = {"fpr": [], "tpr": []}
        one["histogram"] = {"edges": [], "members": [], "nonmembers": []}
        one["adjusted_p"] = None
        one["tpr_at_fpr"] = one["tpr_at_fpr"][:1]
        one["auc"] = {"value": None, "low": None, "high": None}
    html = render(leak)
    text = Page(html).text
    assert "Every attack that was asked for was run." in text
    assert "nothing vouches for this audit" in text
    assert "records handed in by the user" in text
    assert "3, left to the model" in text
    assert "Clipped" not in text
    assert "not measured" in text
    assert "Seed unknown." in text
    assert "unknown" in text
    assert "interval unknown" in text
    assert "How the attack tells them apart" not in text
    assert "None" not in text.replace("None of the", "")


@pytest.mark.slow
def test_what_explanations_add_stands_after_the_attacks(
    leak: dict[str, Any], additions: list[dict[str, Any]]
) -> None:
    assert "explanations add" not in render(leak)
    leak["additions"] = additions
    html = render(leak)
    page = Page(html)
    assert sections(html).index("What explanations add to predictions") == 1 + sections(html).index(
        "Every attack that was tried"
    )
    for piece in (
        "Releasing explanations gives away more than releasing predictions does",
        "Increase in advantage by explanation: all of these 0.062 (0.021 to 0.103); gradient 0.062",
        "all of these gradient-forest of 12 loss of 7 0.062 0.021 to 0.103",
        "lrp lrp-sum of 12 loss of 7 −0.183 −0.233 to −0.133",
    ):
        assert piece in page.text, piece
    assert len(re.findall("<svg xmlns", html)) == 6 + 2


@pytest.mark.slow
def test_what_was_brought_back_stands_after_the_attacks_with_sentences_and_pictures(
    leak: dict[str, Any], disclosures: list[dict[str, Any]]
) -> None:
    assert "brought back" not in render(leak)
    leak["disclosures"] = disclosures
    leak["outcomes"][-1]["attack"] = "shown"
    html = render(leak)
    page = Page(html)
    assert sections(html).index("Records that were brought back") == 1 + sections(html).index(
        "Who is most at risk"
    )
    for piece in (
        "by 5 records shows a record that equals theirs, in every feature the model is given, to "
        "20.0% of members (18.2% to 21.8%) and 1.0% of non-members (0.5% to 1.5%)",
        "everyone 20.0% (18.2% to 21.8%); non-members 1.0% (0.5% to 1.5%); Female 12.9%",
        "non-members 1,969 0.5% 0.0% to 1.0% 1.0% 0.5% to 1.5% 1.5% 1.0% to 2.0%",
        "Each adversary could ask 100,000 queries at most.",
        "reconstruction, 1 record Shokri, Strobel & Zick 2021, section 5. It ended because every "
        "query had been asked. 93 93 130 10,000",
        "traversal, 5 records Shokri, Strobel & Zick 2021, section 5. It ended because every query "
        "had been asked. 171 unknown 171 171",
        "Of 1 shown Of 5 shown Of 10 shown",
        "Female 700 7.1% 5.2% to 9.1% 12.9%",
        "with no correction for the number of groups",
        "decided for the attack shown, with a correction. After allowing for the number of groups",
        "Explanation by records",
    ):
        assert piece in page.text, piece
    assert len(re.findall("<svg xmlns", html)) == 6 + 4


def test_extractions_without_groups_have_a_table_and_no_more(
    leak: dict[str, Any], disclosures: list[dict[str, Any]]
) -> None:
    leak["disclosures"] = disclosures[1:2]
    leak["disclosures"][0]["groups"] = []
    page = Page(render(leak))
    assert "traversal, 5 records" in page.text
    assert "shown a record equal to theirs" not in page.text
    assert "Whoever holds" not in page.text


@pytest.mark.slow
def test_members_shown_to_themselves_need_no_other_extraction(
    leak: dict[str, Any], disclosures: list[dict[str, Any]]
) -> None:
    leak["disclosures"] = disclosures[:1]
    html = render(leak)
    assert "How soon training records are shown" not in html
    assert 'id="exposed-figure-title"' in html
    many = [{**disclosures[0]["groups"][1], "value": str(at), "k": 5} for at in range(30)]
    disclosures[0]["groups"] += many
    html = render(leak)
    assert 'id="exposed-figure-title"' not in html
    # A size at which a group was not looked at leaves its cell empty.
    assert "28 700 7.1% 5.2% to 9.1% 29 700 7.1%" in Page(html).text


@pytest.mark.slow
def test_leakage_stands_after_the_attacks_with_a_picture_and_what_it_does_not_say(
    leak: dict[str, Any], leakage: list[dict[str, Any]]
) -> None:
    assert "Information leakage" not in render(leak)
    leak["leakage"] = leakage
    html = render(leak)
    page = Page(html)
    assert sections(html).index("Information leakage") == 1 + sections(html).index(
        "Who is most at risk"
    )
    for piece in (
        "on average 0.112 nats of the 0.693 that would settle it, estimated from below",
        "The strongest attack on this model, lira, achieved 0.377 (0.337 to 0.417).",
        "not about this one model",
        "What output_divergence is: a lower bound on what the parameters tell.",
        "0.760 nats 0.710 to 0.810 0.000 p 0.020 0.436 0.421 to 0.450",
        "Divergence of the parameters",
        "Mutual information within each group of records.",
        "Female 1,300 0.200 interval unknown 0.000 p 0.020",
        "What 32 models made like this one tell of a record",
    ):
        assert piece in page.text, piece
    assert html.count('id="leakage-figure-title"') == html.count('id="leakage-narrow-title"') == 1
    # Without outcomes there is still what the shadow models tell.
    leak["outcomes"], leak["verdict"]["attack"] = [], None
    assert 'id="leakage-figure-title"' in render(leak | {"verdict": leak["verdict"]})


@pytest.mark.slow
def test_leakage_without_groups_has_one_table(
    leak: dict[str, Any], leakage: list[dict[str, Any]]
) -> None:
    leak["leakage"] = [one | {"groups": []} for one in leakage]
    assert "within each group of records" not in render(leak)


@pytest.mark.slow
def test_too_many_groups_for_a_picture_are_in_the_table(leak: dict[str, Any]) -> None:
    one = leak["outcomes"][0]["groups"][0]
    leak["outcomes"][0]["groups"] = [one | {"value": f"value {at}"} for at in range(40)]
    html = render(leak)
    assert html.count("<svg xmlns") == 4
    assert "value 39" in html


def test_a_page_can_be_read_by_ear(leak: dict[str, Any]) -> None:
    html = render(leak)
    page = Page(html)
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("main")) == len(page.named("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert html.count("<caption>") == html.count("<table")
    for attributes in page.named("th"):
        assert attributes["scope"] in {"col", "row", "rowgroup"}
    for attributes in page.named("svg"):
        told = "aria-labelledby" in attributes or "aria-label" in attributes
        assert told != (attributes.get("aria-hidden") == "true")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * one for one in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_in_light_in_dark_and_in_print(leak: dict[str, Any]) -> None:
    style = Page(render(leak)).style
    themes = [
        dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(themes) == 3
    for theme in themes:
        paper = luminance(theme["paper"])
        for name in ("ink", "soft", "member", "nonmember", *LEVEL_COLOURS):
            darker, lighter = sorted([paper, luminance(theme[name])])
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, name


LEVEL_COLOURS = ("leaks", "no_leak_found", "undecided", "invalid")


def test_a_key_that_is_missing_is_an_error_and_not_a_blank(leak: dict[str, Any]) -> None:
    del leak["seed"]
    with pytest.raises(jinja2.UndefinedError):
        render(leak)


def test_figures_of_an_invalid_audit_are_folded_away(
    make_report: Callable[[str], dict[str, Any]],
) -> None:
    report = make_report("leaks") | {"verdict": make_report("invalid")["verdict"]}
    page = render(report)
    start, end = page.index("<details"), page.index("</details>")
    assert start < page.index("gradient-boosting is right about") < end
    assert start < page.index("Every attack that was tried") < end
    assert page.index("Can this audit be trusted?") > end
    assert "<details" not in render(make_report("leaks"))


def test_a_leak_within_the_limits_has_a_calmer_tone(leak: dict[str, Any]) -> None:
    assert 'class="leaks"' in render(leak)
    leak["verdict"]["within_limit"] = True
    page = render(leak)
    assert 'class="small_leak"' in page
    assert "Leaks, within the limits" in page
