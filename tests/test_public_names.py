from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

import pytest

import leakscope

PACKAGES = {
    "attacks",
    "channels",
    "defenses",
    "errors",
    "exact",
    "leakage",
    "metrics",
    "models",
    "trials",
}


@pytest.mark.parametrize("name", leakscope.__all__)
def test_every_public_name_resolves(name: str) -> None:
    value = getattr(leakscope, name)
    if name in PACKAGES:
        assert isinstance(value, ModuleType)
        assert value.__name__ == f"leakscope.{name}"
    elif name != "__version__":
        assert value.__name__ == name
        assert value.__module__.startswith("leakscope.")
        assert value.__doc__


@pytest.mark.parametrize("name", leakscope.__all__)
def test_a_public_name_is_the_same_thing_every_time(name: str) -> None:
    # Removing the kept value makes the second access go through the import again.
    first = getattr(leakscope, name)
    if name != "__version__":
        vars(leakscope).pop(name)
    assert getattr(leakscope, name) is first


def test_the_public_surface_is_small_sorted_and_without_repeats() -> None:
    assert leakscope.__all__ == sorted(set(leakscope.__all__))
    assert len(leakscope.__all__) <= 20


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    assert dir(leakscope) == leakscope.__all__


def test_star_import_brings_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from leakscope import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(leakscope.__all__)


@pytest.mark.parametrize("name", ["adit", "numpy", "_private", "auditing_"])
def test_an_unknown_name_is_an_ordinary_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(leakscope, name)
    assert str(caught.value) == f"module 'leakscope' has no attribute '{name}'"


def test_an_unknown_name_cannot_be_imported() -> None:
    with pytest.raises(ImportError, match="cannot import name 'adit'"):
        exec("from leakscope import adit")


def test_the_installed_version_is_the_one_in_the_source() -> None:
    try:
        installed = version("leakscope")
    except PackageNotFoundError:
        pytest.skip("leakscope is on the path but not installed")
    assert installed == leakscope.__version__
