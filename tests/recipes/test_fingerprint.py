from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope.errors import InputError
from leakscope.recipes import as_recipe, named_recipe
from leakscope.recipes import fingerprint as fingerprints
from leakscope.recipes.fingerprint import fingerprint
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.registry import entries

OWN = """
from mine_helping import double
from sklearn.tree import DecisionTreeClassifier

class Tree(DecisionTreeClassifier):
    def fit(self, X, y):
        return super().fit(double(X), y)

def scaled(X):
    import mine_package.deep
    return X
"""
FILES = {
    "mine_making.py": OWN,
    "mine_helping.py": "def double(X):\n    return 2 * X\n",
    "mine_package/__init__.py": "from . import beside, nothing_there\n",
    "mine_package/beside.py": "from ..... import too_far\n",
    "mine_package/deep.py": "from .beside import x\nimport no_such_module, lightgbm\n",
    "mine_unused.py": "",
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user's own modules: one makes estimators, another helps it, a package is met later."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("mine_making")
    yield module
    for name in list(sys.modules):
        if name.startswith("mine_"):
            del sys.modules[name]


def mine(**options: Any) -> SklearnRecipe:
    return SklearnRecipe("mine", RandomForestClassifier(**options))


def test_it_is_the_same_for_the_same_recipe_and_another_for_every_other() -> None:
    names = [entry.name for entry in entries("recipe")]
    first, second = ([fingerprint(named_recipe(name)) for name in names] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(names)
    assert all(len(mark) == 64 and int(mark, 16) >= 0 for mark in first)


def test_it_changes_with_every_setting_however_deep() -> None:
    bagging = BaggingClassifier(DecisionTreeClassifier())
    deeper = BaggingClassifier(DecisionTreeClassifier(max_depth=3))
    recipes = [
        mine(),
        mine(n_estimators=101),
        mine(max_features=0.5),
        mine(class_weight={0: 1.0, 1: 2.0}),
        mine(class_weight={0: 1.0, 1: 2.5}),
        SklearnRecipe("mine", RandomForestClassifier(), prepare=False),
        SklearnRecipe("yours", RandomForestClassifier()),
        SklearnRecipe("mine", bagging),
        SklearnRecipe("mine", deeper),
        SklearnRecipe("mine", make_pipeline(StandardScaler(), deeper)),
        SklearnRecipe("mine", make_pipeline(StandardScaler(with_mean=False), deeper)),
        SklearnRecipe("mine", make_pipeline(FunctionTransformer(np.sqrt), deeper)),
        SklearnRecipe("mine", make_pipeline(FunctionTransformer(np.log), deeper)),
    ]
    assert len({fingerprint(recipe) for recipe in recipes}) == len(recipes)


def test_a_fitted_estimator_is_the_recipe_of_its_clone() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    fitted = BaggingClassifier(DecisionTreeClassifier(), 2).fit(X, X[:, 0] > 0)
    assert fingerprint(as_recipe(fitted)) == fingerprint(as_recipe(clone(fitted)))
    assert fingerprint(as_recipe(fitted)) == fingerprint(
        as_recipe(BaggingClassifier(DecisionTreeClassifier(), 2))
    )


def in_another_process(code: str, hash_seed: int, folder: Path) -> str:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": os.pathsep.join([str(Path(leakscope.__file__).parents[1]), str(folder)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, *([code] if code.endswith(".py") else ["-c", code])],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout


SEVERAL = """
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from leakscope.recipes import as_recipe, named_recipe
from leakscope.recipes.fingerprint import fingerprint
import mine_making

def marks():
    yield fingerprint(named_recipe("network"))
    yield fingerprint(as_recipe(RandomForestClassifier(class_weight={"b": 1, "a": 2, "c": 3})))
    yield fingerprint(as_recipe(mine_making.Tree()))
    forgetful = FunctionTransformer(kw_args={"names": {"some", "names", "in", "a", "set"}})
    yield fingerprint(as_recipe(make_pipeline(forgetful, mine_making.Tree(max_depth=2))))
"""


@pytest.mark.slow
def test_every_process_says_the_same(own: Any) -> None:
    folder = Path(own.__file__).parent
    (folder / "mine_several.py").write_text(SEVERAL)
    here = importlib.import_module("mine_several").marks()
    code = "import mine_several\nfor mark in mine_several.marks(): print(mark)"
    answers = {in_another_process(code, hash_seed, folder) for hash_seed in (1, 2)}
    assert answers == {"".join(f"{mark}\n" for mark in here)}


SCRIPT = """
from leakscope.recipes import as_recipe
from leakscope.recipes.fingerprint import fingerprint
from sklearn.tree import DecisionTreeClassifier

class Mine(DecisionTreeClassifier):
    pass

print(fingerprint(as_recipe(Mine())))
"""


@pytest.mark.slow
def test_a_class_of_a_script_is_known_by_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    first, second = (in_another_process("script.py", seed, tmp_path) for seed in (1, 2))
    assert first == second
    script.write_text(SCRIPT.replace("pass", "depth = 3"))
    assert in_another_process("script.py", 1, tmp_path) != first


@pytest.mark.slow
def test_a_class_typed_in_is_known_by_what_it_does(tmp_path: Path) -> None:
    typed = SCRIPT + SCRIPT.replace("pass", "depth = 3")
    first, second = in_another_process(typed, 1, tmp_path).split()
    assert len(first) == 64
    assert first != second


@pytest.mark.slow
def test_what_is_run_by_its_name_knows_its_package(
    own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = type(sys)("__main__")
    monkeypatch.setitem(sys.modules, "__main__", running)
    exec(compile("class Tree: pass", "typed in", "exec"), vars(running))
    typed_in = fingerprint(running.Tree())
    folder = Path(own.__file__).parent
    running.__file__ = str(folder / "mine_package" / "deep.py")
    running.__package__ = "mine_package"
    before = fingerprint(running.Tree())
    assert before != typed_in
    (folder / "mine_package" / "beside.py").write_text("x = 2")
    assert fingerprint(running.Tree()) != before


@pytest.mark.parametrize("file", [name for name in FILES if name != "mine_unused.py"])
@pytest.mark.parametrize("make", ["Tree", "scaled"])
def test_it_changes_with_the_code_of_ones_own_modules(own: Any, file: str, make: str) -> None:
    recipe = as_recipe(
        own.Tree() if make == "Tree" else make_pipeline(FunctionTransformer(own.scaled), own.Tree())
    )
    before = fingerprint(recipe)
    assert fingerprint(recipe) == before
    changed = Path(own.__file__).parent / file
    changed.write_text(changed.read_text() + "\n# another line\n")
    assert fingerprint(recipe) != before


def test_it_does_not_change_with_code_that_is_not_used(own: Any) -> None:
    recipe = as_recipe(own.Tree())
    before = fingerprint(recipe)
    (Path(own.__file__).parent / "mine_unused.py").write_text("x = 1\n")
    assert fingerprint(recipe) == before


def test_what_cannot_be_parsed_or_was_made_by_hand_is_let_through(
    own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = as_recipe(own.Tree())
    helping = Path(own.__file__).parent / "mine_helping.py"
    helping.write_bytes(b"\x00 not Python")
    before = fingerprint(recipe)
    helping.write_bytes(b"import mine_by_hand.inner")
    monkeypatch.setitem(sys.modules, "mine_by_hand", type(sys)("mine_by_hand"))
    assert fingerprint(recipe) != before


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions of libraries to change."""
    changed: dict[str, str] = {}
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: changed.get(name) or real(name))
    return changed


@pytest.mark.parametrize("library", ["numpy", "scipy", "scikit-learn", "lightgbm"])
def test_it_changes_with_the_version_of_a_library(versions: dict[str, str], library: str) -> None:
    recipe = as_recipe(LGBMClassifier())
    before = fingerprint(recipe)
    versions[library] = "99.0"
    assert fingerprint(recipe) != before


def test_it_does_not_change_with_libraries_it_has_nothing_of(versions: dict[str, str]) -> None:
    before = fingerprint(mine())
    versions["lightgbm"] = "99.0"
    assert fingerprint(mine()) == before


def test_libraries_of_ones_own_code_count(own: Any, versions: dict[str, str]) -> None:
    recipe = as_recipe(own.Tree())
    before = fingerprint(recipe)
    versions["lightgbm"] = "99.0"  # imported by a module that is imported inside a function
    assert fingerprint(recipe) != before


def test_it_changes_with_the_version_of_leakscope(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(named_recipe("tree"))
    monkeypatch.setattr(fingerprints, "__version__", "99.0")
    assert fingerprint(named_recipe("tree")) != before


def with_function(function: Callable[[Any], Any]) -> SklearnRecipe:
    return SklearnRecipe("mine", make_pipeline(FunctionTransformer(function), StandardScaler()))


def test_functions_without_a_name_are_known_by_what_they_do() -> None:
    def times(factor: int) -> SklearnRecipe:
        return with_function(lambda X: X * factor)

    assert fingerprint(times(2)) == fingerprint(times(2))
    assert fingerprint(times(2)) != fingerprint(times(3))
    assert fingerprint(with_function(partial(np.multiply, 2))) != fingerprint(
        with_function(partial(np.multiply, 3))
    )


def test_modules_that_such_functions_use_count(own: Any) -> None:
    helping = importlib.import_module("mine_helping")
    recipe = with_function(lambda X: helping.double(X) + 1)
    before = fingerprint(recipe)
    file = Path(helping.__file__ or "")
    file.write_text(file.read_text() + "# another line\n")
    assert fingerprint(recipe) != before


def test_what_no_process_can_be_sent_is_one_sentence() -> None:
    lock = threading.Lock()
    with pytest.raises(InputError, match="cannot be sent to a worker") as caught:
        fingerprint(with_function(lambda X: lock and X))
    assert "\n" not in str(caught.value)


def test_a_global_that_the_code_reads_is_a_setting(own: Any, tmp_path: Path) -> None:
    (tmp_path / "mine_set.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier\n"
        "DEPTH, OTHER, NAMES = 1, 1, ('a', 'b')\n"
        "class Set(DecisionTreeClassifier):\n"
        "    def fit(self, X, y):\n"
        "        def inner():\n"
        "            return DEPTH\n"
        "        return self.set_params(max_depth=inner()) and super().fit(X, y)\n"
        "    @property\n"
        "    def names(self):\n"
        "        return {*NAMES, 'c'}\n"
        "    @staticmethod\n"
        "    def helped(x):\n"
        "        return x in {'p', 'q', 'r'}\n"
    )
    module = importlib.import_module("mine_set")
    marks = [fingerprint(SklearnRecipe("set", module.Set()))]
    for name, value in (("DEPTH", 20), ("NAMES", ("a",)), ("NAMES", {"a": [1.5, None]})):
        setattr(module, name, value)
        marks.append(fingerprint(SklearnRecipe("set", module.Set())))
    assert len(set(marks)) == 4
    module.OTHER = 7  # nothing reads it
    assert fingerprint(SklearnRecipe("set", module.Set())) == marks[-1]


def test_code_as_it_is_loaded_counts_and_not_only_its_file(own: Any, tmp_path: Path) -> None:
    """Edited and not reloaded, a module's old code must not pass for the new after a restart."""
    edited = OWN.replace("double(X)", "double(double(X))")
    (tmp_path / "mine_making.py").write_text(edited)
    stale = fingerprint(SklearnRecipe("own", own.Tree()))
    del sys.modules["mine_making"]
    fresh = importlib.import_module("mine_making")
    assert fingerprint(SklearnRecipe("own", fresh.Tree())) != stale
