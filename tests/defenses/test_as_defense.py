from __future__ import annotations

import pytest

import leakscope as ls
from leakscope.defenses import as_defense
from leakscope.errors import InputError, UnknownNameError


def test_the_written_form() -> None:
    defense = as_defense("noise:0.25")
    assert defense == ls.defenses.OutputPerturbation(sigma=0.25)
    assert str(defense) == "noise:0.25"
    assert as_defense(defense) is defense


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("noise:much", "The defense 'noise:much' has no number after its colon; write it like"),
        ("noise", "needs a number after a colon; write it like 'noise:0.1'"),
        ("explain-crowd", "needs a number after a colon; write it like 'explain-crowd:5'"),
        ("noise:-1", "sigma must be a finite number above 0"),
    ],
)
def test_what_cannot_be_read_is_refused(written: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_defense(written)


def test_a_whole_number_is_one() -> None:
    defense = as_defense("explain-crowd:5")
    assert defense == ls.defenses.CrowdedExplanations(5)
    assert isinstance(ls.defenses.as_defense("explain-crowd:5").size, int)
    assert as_defense("explain-refuse") == ls.defenses.RefusedExplanations()
    with pytest.raises(InputError, match=r"size must be a whole number of at least 2, got 2\.5"):
        as_defense("explain-crowd:2.5")


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'noise'"):
        as_defense("noice:1")


def test_public_names_are_there() -> None:
    assert all(hasattr(ls.defenses, name) for name in ls.defenses.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'dampening'"):
        _ = ls.defenses.dampening


@pytest.mark.parametrize("thing", [0.1, None, ["noise:0.1"]])
def test_what_is_no_defense_is_refused(thing):
    with pytest.raises(InputError, match="is no defense; give a Defense, or write one like 'noise"):
        as_defense(thing)
