from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from leakscope import registry
from leakscope.errors import InputError, UnknownNameError
from leakscope.registry import HOMES, entries, lookup, register


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """What a test registers is gone after it."""
    for kind in HOMES:
        list(entries(kind))  # what is there is found before the first test
    kept = {kind: dict(found) for kind, found in registry._ENTRIES.items()}
    yield
    for kind, found in kept.items():
        registry._ENTRIES[kind].clear()
        registry._ENTRIES[kind].update(found)


class Guess:
    """Guesses at random.

    It is of no use.
    """

    name: ClassVar[str] = "zz-guess"
    paper: ClassVar[str] = "Nobody 2020, section 1"


def test_a_class_is_entered_under_its_own_name_and_paper() -> None:
    assert register("attack")(Guess) is Guess
    entry = lookup("attack", "zz-guess")
    assert (entry.kind, entry.name, entry.thing) == ("attack", "zz-guess", Guess)
    assert entry.paper == "Nobody 2020, section 1"
    assert entry.summary == "Guesses at random."


def test_a_function_is_entered_under_a_given_name() -> None:
    @register("recipe", "zz-nothing", paper="Nobody 2021")
    def make() -> None:
        pass

    entry = lookup("recipe", "zz-nothing")
    assert (entry.thing, entry.paper, entry.summary) == (make, "Nobody 2021", "")


def test_entries_come_by_name_and_with_what_was_registered_late() -> None:
    before = [entry.name for entry in entries("attack")]
    register("attack")(Guess)
    after = [entry.name for entry in entries("attack")]
    assert after == sorted([*before, "zz-guess"])
    assert len(before) > 3


@pytest.mark.parametrize("kind", HOMES)
def test_everything_registered_has_a_summary_of_one_line(kind: str) -> None:
    found = list(entries(kind))
    assert found
    for entry in found:
        assert entry.kind == kind
        assert entry.summary.endswith(".")


def test_the_same_thing_may_be_registered_again() -> None:
    register("attack")(Guess)
    register("attack")(Guess)
    assert lookup("attack", "zz-guess").thing is Guess


def test_another_thing_under_a_taken_name_is_refused() -> None:
    register("attack")(Guess)
    other: Any = type("Other", (), {"name": "zz-guess", "__module__": "elsewhere"})
    with pytest.raises(InputError, match=r"'zz-guess' is already .*\.Guess; give elsewhere\.Other"):
        register("attack")(other)
    assert lookup("attack", "zz-guess").thing is Guess


def test_a_thing_without_a_name_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"Nameless has no name .* @register\('channel', 'its name'"
    ):
        register("channel")(type("Nameless", (), {}))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no recipe named 'forrest'; did you mean 'forest'"):
        lookup("recipe", "forrest")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no kind of entry named 'atack'; did you mean 'att"):
        register("atack", "x")
    with pytest.raises(UnknownNameError, match="no kind of entry named 'atack'; did you mean 'att"):
        list(entries("atack"))
