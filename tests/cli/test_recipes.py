from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sklearn.tree import DecisionTreeClassifier

from leakscope.cli.recipes import find_recipe
from leakscope.errors import InputError, UnknownNameError

MODULE = """
from sklearn.tree import DecisionTreeClassifier
from leakscope.protocols import Recipe

stump = DecisionTreeClassifier(max_depth=1)
number = 7

def make():
    return DecisionTreeClassifier(max_depth=2)

class Shelf:
    tree = DecisionTreeClassifier(max_depth=3)

class Ready(Recipe):
    name = "ready"

    def fit_many(self, records, roles, seeds):
        return []

class Unready:
    fit_many = Ready.fit_many

def broken():
    raise RuntimeError("first line\\nsecond line")
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of one's own in the folder one stands in, which is not on the path."""
    (tmp_path / "mine_for_tests.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "mine_for_tests", raising=False)
    return "mine_for_tests"


def test_a_name_is_a_registered_recipe() -> None:
    assert find_recipe("tree").name == "tree"
    with pytest.raises(UnknownNameError, match="did you mean 'tree'"):
        find_recipe("tre")


@pytest.mark.parametrize(("attribute", "depth"), [("stump", 1), ("make", 2), ("Shelf.tree", 3)])
def test_a_module_here_holds_an_estimator_or_makes_one(
    mine: str, attribute: str, depth: int
) -> None:
    recipe = find_recipe(f"{mine}:{attribute}")
    assert recipe.name == f"{mine}:{attribute}"
    assert recipe.estimator.max_depth == depth


def test_a_class_makes_an_estimator() -> None:
    recipe = find_recipe("sklearn.tree:DecisionTreeClassifier")
    assert isinstance(recipe.estimator, DecisionTreeClassifier)


def test_the_folder_is_put_on_the_path_once(mine: str) -> None:
    find_recipe(f"{mine}:stump")
    find_recipe(f"{mine}:make")
    assert sys.path.count(str(Path.cwd())) == 1


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("nothing", "AttributeError: module 'mine_for_tests' has no attribute 'nothing'"),
        ("", "AttributeError"),
        ("broken", "(RuntimeError: first line)"),
        ("number", "is a int, not an estimator"),
        ("Unready", "is a Unready without name and together"),
        ("sys.exit", "AttributeError"),
    ],
)
def test_what_is_no_recipe_is_one_sentence(mine: str, attribute: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        find_recipe(f"{mine}:{attribute}")
    assert f"The recipe '{mine}:{attribute}'" in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["no_such_module:x", ":x", "sys:exit", "os:abcdef"])
def test_a_module_that_cannot_be_used_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=f"The recipe '{text}' could not be made"):
        find_recipe(text)


def test_a_recipe_of_ones_own_is_taken_as_it_is(mine: str) -> None:
    assert find_recipe(f"{mine}:Ready").name == "ready"
