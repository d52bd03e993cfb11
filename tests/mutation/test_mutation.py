"""What counts as a mutant, and which tests are run for it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = '''\
"""Of a module."""
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    limit = 1

@overload
def twice(x: int | None) -> int: ...
def twice(x: int | None = 1) -> int:
    """Of a function."""
    if x is None:
        return 0
    total: int | float = x + x
    return total
'''


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import running
    import sampling

    return sampling, running


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("x: int | None)", "x: int + None)", False),
        ("total: int | float", "total: int + float", False),
        ("limit = 1", "limit = 2", False),
        ("Of a function", "Off a function", False),
        ("@overload\n", "", True),  # another function is in its place
        ("= 1) -> int:", "= 2) -> int:", True),
        ("x + x", "x - x", True),
        ("x is None", "x is not None", True),
    ],
)
def test_a_mutant_counts_if_it_does_something_else(
    modules: Any, old: str, new: str, counts: bool
) -> None:
    sampling, _ = modules
    assert old in SOURCE
    changed = sampling.behaviour(SOURCE.replace(old, new)) != sampling.behaviour(SOURCE)
    assert changed is counts


def test_a_source_that_python_does_not_take_has_no_behaviour(modules: Any) -> None:
    sampling, _ = modules
    assert sampling.behaviour(SOURCE) is not None
    assert sampling.behaviour(SOURCE.replace("x + x", "x + *")) is None


def test_the_tests_that_reach_a_mutant_come_first_and_the_rest_of_its_file_last(
    modules: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sampling, running = modules
    monkeypatch.setattr(sampling, "SOURCE", tmp_path)
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/sums.py").write_text(SOURCE, "utf-8")
    own, other = "tests/metrics/test_sums.py::test_", "tests/attacks/test_all.py::test_"
    seconds = {own + "slow": 5.0, own + "quick": 1.0, own + "beside": 0.1, other + "far": 0.5}
    reach = {own + "slow", own + "quick", other + "far"}
    known = running.Map(seconds, {"metrics/sums.py": {11: reach, 13: {own + "slow"}}}, set())

    def tests(line: int, budget: float = 60.0) -> list[str]:
        return known.tests_of(sampling.Mutant("metrics/sums.py", "any", 0, line), budget)

    assert tests(13) == [own + "slow", own + "beside", own + "quick"]
    everything = [own + "quick", own + "slow", other + "far", own + "beside"]
    assert tests(11) == everything
    assert tests(9) == everything  # a default runs on import, and the function is what tells
    assert tests(11, budget=2.0) == [own + "quick", other + "far", own + "beside"]
