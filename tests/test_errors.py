from __future__ import annotations

import pickle
import re

import pytest

from leakscope import errors
from leakscope.errors import (
    InputError,
    LeakscopeError,
    MissingDataError,
    MissingExtraError,
    ModelError,
    NotApplicableError,
    OracleBudgetError,
    RecordsError,
    StoreError,
    UnknownNameError,
    UntrustedFileError,
)

EXAMPLES = [
    LeakscopeError("a sentence"),
    InputError("a sentence"),
    RecordsError("a sentence"),
    ModelError("a sentence"),
    UnknownNameError("attack", "los", {"loss", "entropy"}),
    NotApplicableError("a sentence"),
    MissingDataError("a sentence"),
    MissingExtraError("A torch model", "torch"),
    StoreError("a sentence"),
    OracleBudgetError("a sentence"),
    UntrustedFileError("a sentence"),
]


def test_every_error_has_an_example_here() -> None:
    defined = {thing for thing in vars(errors).values() if isinstance(thing, type)}
    assert {type(example) for example in EXAMPLES} == {
        thing for thing in defined if issubclass(thing, Exception)
    }


def test_the_tree_at_the_top_of_the_file_is_the_tree() -> None:
    lines = (errors.__doc__ or "").splitlines()
    drawn = [re.search(r"(\w+Error)(?: \((\w+)\))?", line) for line in lines]
    path: list[str] = []
    for line, match in zip(lines, drawn, strict=True):
        if match is None:
            continue
        depth = line.index(match[1]) // 4
        path[depth:] = [match[1]]
        bases = {base.__name__ for base in getattr(errors, match[1]).__bases__}
        expected = {path[depth - 1]} if depth else {"Exception"}
        assert bases == expected | ({match[2]} if match[2] else set())
    assert {match[1] for match in drawn if match} == {type(one).__name__ for one in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_from_a_worker(error: LeakscopeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert "\n" not in str(error)


def test_an_unknown_name_suggests_the_nearest() -> None:
    error = UnknownNameError("attack", "los", ["loss", "entropy"])
    assert str(error) == "There is no attack named 'los'; did you mean 'loss'?"
    assert isinstance(error, KeyError)


def test_an_unknown_name_lists_all_where_none_is_near() -> None:
    error = UnknownNameError("attack", "xyz", (name for name in ["loss", "entropy"]))
    assert str(error) == "There is no attack named 'xyz'; choose from: entropy, loss"


def test_an_unknown_name_among_none() -> None:
    assert str(UnknownNameError("attack", "xyz", [])) == (
        "There is no attack named 'xyz'; there are none"
    )


def test_a_missing_extra_says_how_to_install_it() -> None:
    assert str(MissingExtraError("A torch module", "torch")) == (
        "A torch module needs an optional package; pip install 'leakscope[torch]'"
    )
