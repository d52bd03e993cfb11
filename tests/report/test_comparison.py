from __future__ import annotations

import copy
import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from leakscope.errors import InputError
from leakscope.report.comparison import FILES, Comparison
from leakscope.report.comparison_plots import frontier
from leakscope.report.comparison_terminal import print_comparison
from leakscope.report.comparison_words import (
    added,
    duration,
    facts,
    not_run,
    points,
    points_span,
    size,
)

HOSTILE = "<script>alert(1)</script>[bold]\x1b[2J"


def interval(value, half=0.02):
    return {"value": value, "low": value - half, "high": value + half}


def row(defense, seed, leaking, right):
    js = interval(0.1)
    return {
        "defense": defense,
        "seed": seed,
        "train_accuracy": 0.9,
        "test_accuracy": right,
        "attack": "loss",
        "attack_accuracy": leaking,
        "low": leaking - 0.1,
        "high": leaking + 0.1,
        "advantage": 2 * leaking - 1,
        "auc": 0.6,
        "attacks": 2,
        "leakage": {"channel": "margin", "js": js, "gain": js} if seed else None,
        "epsilon": None,
        "delta": None,
        "guarantee": "no formal guarantee",
        "bytes": 1234,
        "train_seconds": 0.5,
        "predict_seconds": 0.001,
        "epochs": 12.0,
    }


def summary(defense, leaking, right, **more):
    change = {"test_accuracy": interval(0.01), "attack_accuracy": interval(-0.1)}
    return {
        "defense": defense,
        "seeds": 2,
        "attack": "loss",
        "test_accuracy": interval(right),
        "attack_accuracy": interval(leaking),
        "train_accuracy": 0.9,
        "advantage": 0.2,
        "auc": 0.6,
        "bytes": 1234.0,
        "train_seconds": 0.5,
        "predict_seconds": 0.001,
        "epochs": 12.0,
        "js": 0.1,
        "epsilon": None,
        "delta": None,
        "guarantee": "no formal guarantee",
        "frontier": True,
        "beaten_by": [],
        "against_none": None if defense == "none" else change,
    } | more


@pytest.fixture
def data():
    defenses = {"none": (0.8, 0.7), "prune:16": (0.6, 0.69), HOSTILE: (0.55, 0.5)}
    summaries = [summary(name, *figures) for name, figures in defenses.items()]
    summaries[2] |= {"frontier": False, "beaten_by": ["prune:16"], "epsilon": 6.28}
    summaries[1] |= {"epochs": None, "bytes": None, "train_seconds": None, "js": None}
    return {
        "schema_version": 1,
        "leakscope": "0.1.0",
        "created": "2026-11-16T14:00:00+00:00",
        "command": f"leakscope compare {HOSTILE}",
        "setup": {
            "dataset": "adult",
            "recipe": "network",
            "records": 3000,
            "features": 5,
            "classes": ["no", "yes"],
            "persons": None,
            "members": [1000, 1000],
            "reference": [1000, 1000],
            "nonmembers": [999, 1000],
            "seeds": 2,
            "seed": 0,
            "defenses": [*defenses],
            "attacks": ["loss", "label-gap"],
            "shadows": 0,
            "limit": 0.1,
            "baselines": [
                {"kind": "equal compute", "beside": ["prune:16"], "defense": None,
                 "reason": "No epochs."},
                {"kind": "early", "beside": ["prune:16"], "defense": "early-stop:3",
                 "reason": "As accurate."},
            ],
            "not_run": [
                {"attack": "lira", "reason": "No shadows.", "defenses": [*defenses]},
                {"attack": "entropy", "reason": "None shown.", "defenses": [HOSTILE]},
                {"attack": "shown", "reason": "Not asked for.", "defenses": []},
            ],
            "how": {"division": "Three sets.", "headline": "The strongest."},
        },
        "rows": [
            row(name, seed, *figures) for name, figures in defenses.items() for seed in range(2)
        ],
        "summary": summaries,
        "frontier": ["none", "prune:16"],
        "advice": f"Take prune:16 {HOSTILE}.",
        "cost": {"models": 6, "seconds": 12.0},
    }  # fmt: skip


def test_it_gives_out_copies(data):
    comparison = Comparison(data)
    comparison.rows[0]["seed"] = comparison.summary[0]["seeds"] = 99
    comparison.to_dict()["advice"] = comparison.frontier.append("x")
    data["advice"] = "changed"
    assert comparison.rows[0]["seed"] == 0
    assert comparison.summary[0]["seeds"] == 2
    assert comparison.frontier == ["none", "prune:16"]
    assert comparison.advice.startswith("Take prune:16")
    assert "3 defenses" in repr(comparison)
    assert "prune:16: attack accuracy 0.600 (0.580 to 0.620)" in repr(comparison)


def test_what_is_no_json_is_refused(data):
    data["cost"]["seconds"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        Comparison(data)


def test_saved_and_loaded(data, tmp_path):
    comparison = Comparison(data)
    folder = comparison.save(tmp_path / "run")
    assert sorted(one.name for one in folder.iterdir()) == sorted(FILES)
    assert Comparison.load(folder) == comparison == Comparison.load(folder / "compare.json")
    rows = list(csv.DictReader(io.StringIO((folder / "compare.csv").read_text("utf-8"))))
    assert [one["seed"] for one in rows] == ["0", "1"] * 3
    assert (rows[0]["js"], rows[1]["js"], rows[1]["gain_low"]) == ("", "0.1", "0.08")


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "cannot be read"), ("{", "cannot be read"), ("[]", "schema_version is None"),
     ('{"schema_version": 1}', "is not a comparison"), ('{"schema_version": 2}', "is 2")],
)  # fmt: skip
def test_what_is_no_comparison_is_refused(text, message, tmp_path):
    path = tmp_path / "compare.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        Comparison.load(path)


class Page(HTMLParser):
    """Notes the tags, and that each is closed."""

    VOID = ("meta", "br", "path", "circle", "rect", "line", "use", "polygon")

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(data):
    text = Comparison(data).to_html()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert "script" not in {tag for tag, _ in page.tags}
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "\x1b" not in text
    assert "&lt;script&gt;" in text
    assert "no formal guarantee" in text
    assert "As accurate." in text
    assert "No shadows." in text
    assert "Not asked for." not in text
    assert "unknown" in text
    names = [one["id"] for _, one in page.tags if "id" in one]
    assert len(names) == len(set(names))
    frame = Comparison(data)._repr_html_()
    assert frame.startswith("<iframe")
    assert "<script" not in frame


def test_the_figure_says_what_it_shows_without_colours(data):
    wide = frontier(data["summary"], "one")
    assert "2 prune:16" in wide
    assert "test accuracy 69.0%, on the frontier" in wide
    assert "test accuracy 50.0%, dominated" in wide
    narrow = frontier(data["summary"], "two", narrow=True)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", narrow)
    assert {"1", "2", "3"} <= set(texts)
    assert not any("prune" in one for one in texts)
    many = [summary(f"l2:{one}", 0.6, 0.7) for one in range(13)]
    assert not any("l2" in one for one in re.findall(r"<text[^>]*>([^<]*)</text>",
                                                     frontier(many, "three")))  # fmt: skip


def test_the_terminal_has_the_advice_the_table_and_the_files(data, tmp_path):
    console = Console(file=io.StringIO(), width=120)
    print_comparison(data, console, folder=tmp_path)
    text = console.file.getvalue()
    assert "Take prune:16" in text
    assert "* prune:16" in text
    assert "60.0%" in text
    assert "58.0% to 62.0%" in text
    assert "6.28" in text
    assert "no equal compute: beside prune:16: No epochs." in text
    assert "lira: No shadows." in text
    assert "\x1b[2J" not in text
    assert "[bold]" in text
    assert [str(tmp_path / name) in text for name in FILES] == [True] * 3
    alone = copy.deepcopy(data)
    alone["setup"] |= {"baselines": [], "not_run": [], "seeds": 1}
    console = Console(file=io.StringIO(), width=120)
    print_comparison(alone, console)
    assert "means over 1 seed with" in console.file.getvalue()
    assert "Baselines" not in console.file.getvalue()


def test_what_the_seeds_do_not_resolve_is_marked_everywhere(data):
    text = "2 seeds cannot resolve the frontier; about 8 would. Undecided: prune:16."
    data["summary"][1]["undecided_against"] = ["none"]
    data["summary"][1]["against_none"] |= {"privacy": "better", "accuracy": "worse"}
    data["summary"][0]["baseline"] = "no defense"
    data["frontier_resolution"] = {
        "resolved": False, "undecided": ["prune:16"], "seeds_needed": 8, "text": text,
    }  # fmt: skip
    page = Comparison(data).to_html()
    assert text in page
    assert "accuracy and privacy: none.</p>" in page
    assert "undecided: none" in page
    assert "−12.0 to −8.0; better" in page
    assert "−1.0 to 3.0; worse" in page
    assert "baseline: no defense" in page
    assert "test accuracy 69.0%, undecided" in page
    console = Console(file=io.StringIO(), width=120)
    print_comparison(data, console)
    printed = console.file.getvalue()
    assert text in printed
    assert "? prune:16" in printed
    assert "* none" in printed
    assert printed.count("\n  baseline ") == 1


def test_a_defense_without_figures_has_no_point_and_a_row(data):
    nothing = dict.fromkeys(("value", "low", "high"))
    data["summary"][1] |= {"attack_accuracy": nothing, "test_accuracy": nothing}
    data["summary"][1]["against_none"] = {"attack_accuracy": nothing, "test_accuracy": nothing}
    page = Comparison(data).to_html()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", frontier(data["summary"], "one"))
    assert any(text.startswith("3 ") for text in texts)
    assert not any("prune" in text for text in texts)
    assert "2 prune:16" in page
    assert "unknown to unknown" in page


def test_the_first_sentence_is_the_heading(data):
    data["advice"] = "early-stop (accuracy 0.9) is better. 3 seeds cannot rank it."
    page = Comparison(data).to_html()
    assert 'class="long">early-stop (accuracy 0.9) is better.</h1>' in page
    assert '<p class="reason">3 seeds cannot rank it.</p>' in page


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [(-0.08, 0.036, "−8.0 to 3.6"), (-0.0012, -0.00004, "−0.1 to −0.004"), (0.0, 0.0, "0.0 to 0.0"),
     (-1e-9, 0.01, "0.0 to 1.0"), (-0.0996, -0.1004, "−10.0 to −10.0")],
)  # fmt: skip
def test_an_interval_that_excludes_0_does_so_in_words(low, high, told):
    assert points_span({"low": low, "high": high}) == told


def test_words(data):
    assert [size(one) for one in (None, 12, 1234, 5.6e7, 3e9, 4e13)] == [
        "unknown", "12 bytes", "1.23 kB", "56 MB", "3 GB", "4e+04 GB",
    ]  # fmt: skip
    assert [duration(one) for one in (None, 0.0012, 0.5, 12.3)] == [
        "unknown", "1.2 ms", "0.5 s", "12.3 s",
    ]  # fmt: skip
    assert points(interval(-0.022)) == "−2.2"
    told = dict(facts(data["setup"]))
    assert told["Members"] == "1,000 for each seed"
    assert told["Evaluation non-members"] == "999 to 1,000 for each seed"
    assert told["Data set"] == "adult"
    persons = data["setup"] | {"persons": 12, "dataset": None}
    assert dict(facts(persons))["Persons"] == "12"
    assert "Data set" not in dict(facts(persons))
    assert added(data["setup"])[1] == ("early-stop:3", "beside prune:16: As accurate.")
    assert not_run(data) == [("lira", "No shadows."), ("entropy", f"on {HOSTILE}: None shown.")]


def test_the_json_is_the_data(data):
    assert json.loads(Comparison(data).to_json()) == json.loads(json.dumps(data))
