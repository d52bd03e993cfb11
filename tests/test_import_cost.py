from __future__ import annotations

import json
import subprocess
import sys

import pytest

# What only some users need, and what `import leakscope` therefore must not load.
HEAVY = {
    "captum", "dask", "jinja2", "joblib", "matplotlib", "numpy", "opacus", "pandas", "ray",
    "rich", "scipy", "skops", "sklearn", "torch", "typer",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after the code and had not before."""
    program = f"""
import json, sys
before = set(sys.modules)
{code}
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout))


def heavy(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} & HEAVY


def test_importing_the_package_loads_no_library_at_all() -> None:
    assert heavy(loaded_by("import leakscope")) == set()


def test_importing_the_package_loads_none_of_its_modules() -> None:
    modules = loaded_by("import leakscope")
    assert {module for module in modules if module.partition(".")[0] == "leakscope"} == {
        "leakscope"
    }


@pytest.mark.slow
def test_importing_the_package_loads_a_fraction_of_what_numpy_and_scipy_load() -> None:
    # The issue is time; the number of modules stands for it here because it does not vary.
    ours = len(loaded_by("import leakscope"))
    theirs = len(loaded_by("import numpy, scipy.stats"))
    assert ours <= 0.1 * theirs


@pytest.mark.parametrize("code", ["dir(leakscope)", "leakscope.__version__", "leakscope.errors"])
def test_looking_around_stays_light(code: str) -> None:
    assert heavy(loaded_by(f"import leakscope; {code}")) == set()


@pytest.mark.parametrize("name", ["Records", "metrics", "attacks", "channels"])
def test_arrays_need_neither_pictures_nor_networks(name: str) -> None:
    modules = loaded_by(f"import leakscope; leakscope.{name}")
    assert not heavy(modules) & {"matplotlib", "torch", "captum", "opacus", "dask", "ray", "jinja2"}
