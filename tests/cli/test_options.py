from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.models import OptionInfo

from leakscope.auditing.settings import Settings
from leakscope.cli.options import CONTRADICTIONS, PARTNERS, AuditOptions
from leakscope.cli.texts import names_in, values_in
from leakscope.errors import InputError

OWN = ["--members", "a.csv", "--nonmembers", "b.csv"]
SAVED = ["--member-predictions", "a.csv", "--nonmember-predictions", "b.csv"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--members", "a.csv"], "--members is given without --nonmembers; add it"),
        (["--nonmembers", "a.csv"], "--nonmembers is given without --members; add it"),
        (
            ["--member-predictions", "a.csv"],
            "--member-predictions is given without --nonmember-predictions; add it",
        ),
        (
            ["--nonmember-predictions", "a.csv"],
            "--nonmember-predictions is given without --member-predictions; add it",
        ),
        (
            [*OWN, *SAVED],
            "--members and --member-predictions contradict each other; leave one out",
        ),
        (
            [*OWN, "--recipe", "forest"],
            "--members is given without --label, which names the column of the labels; add it",
        ),
        (
            [*OWN, "--label", "y"],
            "--members is given without --model or --recipe or --model-url, and nothing says which "
            "model is audited; add it",
        ),
        (
            [*OWN, "--label", "y", "--recipe", "r", "--network", "mlp"],
            "--network is given without --model, which holds its weights; add it",
        ),
        (["--redact", "--fresh"], "--redact and --fresh contradict each other; leave one out"),
        (
            [*SAVED, "--shadows", "8"],
            "--member-predictions and --shadows contradict each other; leave one out",
        ),
        (
            [*SAVED, "--fresh"],
            "--member-predictions and --fresh contradict each other; leave one out",
        ),
        (
            [*OWN, "--label", "y", "--recipe", "r", "--workers", "2"],
            "--workers is about shadow models, of which none are trained; say how many with "
            "--shadows",
        ),
        (
            ["--shadows", "0", "--fresh"],
            "--fresh is about shadow models, of which none are trained; say how many with "
            "--shadows",
        ),
        (
            ["--address", "tcp://127.0.0.1:1"],
            "--address is given without --backend, and nothing says what kind of cluster is there; "
            "add it",
        ),
        (
            [*OWN, "--label", "y", "--recipe", "r", "--dataset", "iris"],
            "--members and --dataset contradict each other; leave one out",
        ),
        (
            [*OWN, "--label", "y", "--recipe", "r", "--records", "100"],
            "--members and --records contradict each other; leave one out",
        ),
        (
            [*OWN, "--label", "y", "--recipe", "r", "--download"],
            "--members and --download contradict each other; leave one out",
        ),
        (
            [*OWN, "--label", "y", "--recipe", "r", "--trust-pickle"],
            "--trust-pickle is given without --model; add it",
        ),
        (
            ["--dataset", "adult", "--model", "m.skops"],
            "--model is given without --members, and a model does not tell which records it was "
            "trained on; add it",
        ),
        (["--label", "y"], "--label is given without --members or --member-predictions; add it"),
        (["--unit", "y"], "--unit is given without --members or --member-predictions; add it"),
        (
            [*SAVED, "--max-overlap", "0"],
            "--member-predictions and --max-overlap contradict each other; leave one out",
        ),
        (
            [*SAVED, "--model", "m"],
            "--member-predictions and --model contradict each other; leave one out",
        ),
        (
            [*SAVED, "--recipe", "forest"],
            "--member-predictions and --recipe contradict each other; leave one out",
        ),
        (
            [*SAVED, "--data", "x"],
            "--member-predictions and --data contradict each other; leave one out",
        ),
    ],
)
def test_contradictions_are_one_sentence(
    run: Callable[..., Any], tmp_path: Path, words: list[str], sentence: str
) -> None:
    ran = run("audit", *words)
    assert (ran.code, ran.stdout, ran.stderr) == (2, "", f"Error: {sentence}\n")
    assert list(tmp_path.iterdir()) == []


def test_the_rules_name_options_that_exist() -> None:
    options = {field.name for field in fields(AuditOptions)}
    assert {name for pair in CONTRADICTIONS for name in pair} <= options
    assert {name for option, partners, _ in PARTNERS for name in (option, *partners)} <= options


def test_options_bear_the_names_of_settings_and_tell_their_defaults() -> None:
    types = get_type_hints(AuditOptions, include_extras=True)
    for setting in fields(Settings):
        info = next(one for one in get_args(types[setting.name]) if isinstance(one, OptionInfo))
        told = info.show_default
        if setting.name in ("limit", "prior", "delta", "max_overlap"):
            assert float(str(told)) == setting.default
        elif setting.name == "seed":
            assert AuditOptions().seed == setting.default


def test_every_option_has_help_and_stays_in_line_with_its_field() -> None:
    for name, hint in get_type_hints(AuditOptions, include_extras=True).items():
        assert get_origin(hint) is Annotated, name
        info = next(one for one in get_args(hint) if isinstance(one, OptionInfo))
        assert info.help, name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, None),
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("a,a", ["a"]),
        ('"a,b",c', ["a,b", "c"]),
        ('" a"', [" a"]),
        ('"say ""hi""",b', ['say "hi"', "b"]),
        ('"two\nlines"', ["two\nlines"]),
        ("<b>x</b>,[bold]", ["<b>x</b>", "[bold]"]),
    ],
)
def test_names_are_separated_by_commas(text: str | None, names: list[str] | None) -> None:
    assert names_in("groups", text) == names


@pytest.mark.parametrize("text", ["", ",", "a,", ",a", "a,,b", '"a', '"a"b', "a\nb"])
def test_what_is_not_a_list_of_names_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--max-overlap is .*, where names separated by commas"):
        names_in("max_overlap", text)


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, unique=True))
def test_any_name_can_be_given_in_quotes(names: list[str]) -> None:
    text = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    assert names_in("groups", text) == names


def test_options_of_a_data_set_are_read_with_their_types() -> None:
    text = "encoding=table,n=50,share=0.5,frame=true,file=a b.npz"
    expected = {"encoding": "table", "n": 50, "share": 0.5, "frame": True, "file": "a b.npz"}
    assert values_in("dataset_options", text) == expected
    assert values_in("dataset_options", None) == {}


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 100_000])
def test_what_json_does_not_take_is_a_text(value: str) -> None:
    assert values_in("dataset_options", f"n={value}") == {"n": value}


@pytest.mark.parametrize("text", ["table", "encoding=", "=table", "n=1,table"])
def test_options_of_a_data_set_need_a_name_and_a_value(text: str) -> None:
    with pytest.raises(InputError, match=r"--dataset-options has '.*', where NAME=VALUE is needed"):
        values_in("dataset_options", text)
