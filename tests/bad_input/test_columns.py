"""Audits of tables with columns of every kind: figures, or one sentence and exit code 2."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bad_input.cases import A, B, check_refusal
from leakscope.cli import main
from leakscope.cli.columns import sort_out
from leakscope.cli.tables import read_table
from leakscope.controls.blind import blind_control
from leakscope.controls.overlap import find_overlap
from leakscope.errors import LeakscopeError
from leakscope.evidence import Folds
from leakscope.recipes import named_recipe, train
from leakscope.records import pool

FEW = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.generate],  # an audit takes too long to look for a smaller example
)
MANY = settings(FEW, max_examples=50)

DATES = st.dates().map(str)  # of the years 1 to 9999
KINDS: dict[str, st.SearchStrategy[str]] = {
    "dates": DATES,
    "times": st.datetimes().map(str),
    "times of a zone": st.datetimes(timezones=st.timezones()).map(str),
    "dates by the day": st.dates().map(lambda day: f"{day.day}.{day.month}.{day.year:04}"),
    "years": st.integers(-(10**6), 10**6).map(lambda year: f"{year}-12-31"),
    "words": st.sampled_from(["low", "high", "two words", "n/a", "NA", "?", "-"]),
    "any text": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
    "empty": st.just(""),
    "infinities": st.sampled_from(["inf", "-inf", "Infinity", "nan", "NaN", "-nan", "1e999"]),
    "huge": st.integers(-(10**40), 10**40).map(str),
    "26 digits": st.integers(10**25, 10**25 + 5).map(str),
    "very long": st.integers(300, 5000).map(lambda digits: "7" * digits),
    "whole": st.integers(-(2**63), 2**64 - 1).map(str),
    "signs": st.decimals(-10, 10, places=2).map(lambda value: f"{value:+}"),
    "decimals": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "truth": st.sampled_from(["True", "False", "true", "FALSE", "yes", "no", "0", "1"]),
    "digits of other scripts": st.integers(0, 999).map(
        lambda number: str(number).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
    ),
    "money": st.integers(0, 10**7).map(lambda number: f"${number:,}.50"),
    "hexadecimal": st.integers(0, 2**40).map(hex),
}


@st.composite
def column(draw: Callable[..., Any], n: int = 60) -> list[str]:
    """Texts of one kind or of several, with few or many different ones."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    values = st.one_of([KINDS[kind] for kind in kinds])
    distinct = draw(st.lists(values, min_size=1, max_size=12))
    return draw(st.randoms(use_true_random=False)).choices(distinct, k=n)


PAIRS = st.one_of(column().map(lambda one: (one, one[::-1])), st.tuples(column(), column()))


def audit(folder: Path, column: str, sides: tuple[list[str], list[str]], *more: str) -> Any:
    """Audit tables with this column and check that it ends well; the report, None if refused."""
    words = ["audit", "--label", "y", "--recipe", "logistic", "--attacks", "loss", *more]
    for side, table, values in zip(("members", "nonmembers"), (A, B), sides, strict=True):
        path = folder / f"{side}.csv"
        table.assign(**{column: values}).to_csv(path, index=False)
        words += [f"--{side}", str(path)]
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = main([*words, "--out", str(folder / "out")])
    if code == 0:
        return json.loads((folder / "out" / "report.json").read_text("utf-8"))
    check_refusal(code, printed.getvalue(), said.getvalue(), ())
    return None


ORDINARY = {
    "a date for never": ["9999-12-31", "2020-02-29", "2019-01-01"],
    "the first date of Windows": ["1601-01-01", "2020-02-29", ""],
    "the first day": ["0001-01-01", "9999-12-31"],
    "far dates by the day": ["31.12.9999", "1.1.1601"],
    "a word beside a negative decimal": ["low", "-1.5", "2"],
    "a date beside a negative decimal": ["2020-01-01", "-1.5"],
    "26 digits": [f"{10**25 + row}" for row in range(5)],
    "26 digits and gaps": [f"{10**25}", f"{10**25 + 1}", "", "7"],
    "5000 digits": ["7" * 5000, "8" * 5000, "3"],
    "truth and gaps": ["True", "False", ""],
    "truth and numbers": ["True", "0", "7"],
    "digits of other scripts": ["١٢", "٣"],
    "nothing beside a word": ["", "", "NA", "x"],
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_columns_are_audited(name: str, tmp_path: Path) -> None:
    values = np.random.default_rng(0).choice(ORDINARY[name], 120).tolist()
    report = audit(tmp_path, "extra", (values[:60], values[60:]))
    assert report is not None
    assert any("extra" in sentence for sentence in report["target"]["preparation"])


@MANY
@given(sides=PAIRS)
def test_a_recipe_and_the_controls_take_every_column(
    sides: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    """What an audit does with features, without the attacks."""
    tables, recipe = [], named_recipe("logistic")
    for table, values in zip((A, B), sides, strict=True):
        table.assign(extra=values).to_csv(tmp_path / "t.csv", index=False)
        tables.append(read_table(tmp_path / "t.csv"))
    names = ("members", "nonmembers")
    with contextlib.suppress(LeakscopeError):  # an infinite number, or a number beside a text
        found = sort_out(tables, names, recipe, label="y", groups=["extra"], unit="person")
        model = train(recipe, found.records[0], 0)
        records, membership = pool(*found.records)
        assert np.isfinite(model.predict_proba(records.X)).all()
        find_overlap(*found.records)
        folds = Folds.draw(records.blocks(), membership, 0)
        assert blind_control(records, membership, folds, 0).name == "blind baseline"


@pytest.mark.slow
@pytest.mark.parametrize("role", ["feature", "y", "person", "town"])
@FEW
@given(sides=PAIRS)
def test_audits_of_columns_of_every_kind(
    role: str, sides: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    """As a feature, the label, the unit or a group: figures, or one sentence and exit code 2."""
    options = {"person": ["--unit", "person"], "town": ["--groups", "town"]}
    report = audit(tmp_path, role, sides, *options.get(role, []))
    assert report is None or report["outcomes"] or report["not_run"]
