from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import leakscope
from gated import attacked, audited, report_of
from leakscope.report import Report
from leakscope.testing.plugin import LONGEST, folder_name
from pages import ROOT, text_of

pytest_plugins = ["pytester"]

SOURCE = str(ROOT / "src")
PLUGIN = ("-p", "leakscope.testing.plugin")

# The inner runs ask for no audit: what one would say is in a file beside them.
CONFTEST = """
import leakscope
leakscope.audit = lambda model, *sides, **options: leakscope.Report.load(model)
"""
FAILING = """
def test_leaking(assert_private):
    assert_private("strong.json", 1, 2)

def test_safe(assert_private):
    assert_private("safe.json", 1, 2)
    assert_private("safe.json", 1, 2, max_auc=0.9)

def test_by_import():
    from leakscope.testing import assert_private
    assert_private("open.json", 1, 2, allow_undecided=True)

def test_of_something_else():
    pass
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with tests and reports, and pytest with our plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    # The inner conftest replaces it, in this process too; this puts it back.
    monkeypatch.setattr(leakscope, "audit", leakscope.audit)
    for name, tpr in (("strong", 0.9), ("safe", 0.5), ("open", 0.58)):
        report = report_of(audited(attacked("loss", tpr, 0.5)))
        (pytester.path / f"{name}.json").write_text(report.to_json(), "utf-8")
    pytester.makeconftest(CONFTEST)
    return pytester


def test_the_end_of_the_run_lists_every_model(inner: pytest.Pytester) -> None:
    inner.makepyfile(test_models=FAILING)
    ran = inner.runpytest_inprocess(*PLUGIN, "--strict-markers")
    ran.assert_outcomes(passed=3, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "E*AssertionError: Violated: advantage ≤ 0.1: the loss attack has *",
            "*= leakscope =*",
            "test_models.py::test_by_import: Tree: Cannot decide: advantage ≤ 0.1: *",
            "test_models.py::test_leaking: Tree: Violated: advantage ≤ 0.1: *",
            "test_models.py::test_safe: Tree: Holds: advantage ≤ 0.1: *",
            "test_models.py::test_safe: Tree: Holds: all 2 limits.",
        ]
    )
    ran.stdout.no_fnmatch_line("*test_of_something_else*")
    # The failing line is the user's, not one of the library.
    ran.stdout.no_fnmatch_line("*leakscope/testing/__init__.py:*")


def test_nothing_is_said_where_nothing_was_audited(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_plain(): pass")
    ran = inner.runpytest_inprocess(*PLUGIN)
    ran.assert_outcomes(passed=1)
    ran.stdout.no_fnmatch_line("*= leakscope =*")


def test_listening_ends_with_the_run(inner: pytest.Pytester) -> None:
    from leakscope import testing

    before = list(testing.listeners)
    inner.makepyfile("def test_plain(): pass")
    inner.runpytest_inprocess(*PLUGIN)
    assert testing.listeners == before


def test_an_audit_outside_of_a_test_is_not_listed(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        from leakscope.testing import assert_private
        assert_private("safe.json", 1, 2)
        def test_plain(): pass
        """
    )
    ran = inner.runpytest_inprocess(*PLUGIN, "--leakscope-out", "kept")
    ran.assert_outcomes(passed=1)
    ran.stdout.no_fnmatch_line("*= leakscope =*")
    assert not (inner.path / "kept").exists()


def test_reports_are_kept_where_that_is_asked_for(inner: pytest.Pytester) -> None:
    inner.makepyfile(test_models=FAILING)
    inner.runpytest_inprocess(*PLUGIN, "--leakscope-out", "kept", "-k", "safe")
    kept = sorted(path.name for path in (inner.path / "kept").iterdir())
    assert kept == ["test_models.py-test_safe", "test_models.py-test_safe-2"]
    folder = inner.path / "kept" / "test_models.py-test_safe"
    assert Report.load(folder).outcomes[0]["attack"] == "loss"
    # Not who was a member: builds publish what they keep.
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]


def test_audits_can_be_chosen_or_left_out(inner: pytest.Pytester) -> None:
    inner.makepyfile(test_models=FAILING)
    inner.runpytest_inprocess(*PLUGIN, "-m", "leakscope").assert_outcomes(
        passed=1, failed=1, deselected=2
    )
    inner.runpytest_inprocess(*PLUGIN, "-m", "not leakscope").assert_outcomes(
        passed=2, deselected=2
    )


@pytest.mark.slow
def test_workers_tell_what_they_audited(inner: pytest.Pytester) -> None:
    inner.makepyfile(test_models=FAILING)
    ran = inner.runpytest_subprocess(*PLUGIN, "-p", "xdist", "-n", "1")
    ran.assert_outcomes(passed=3, failed=1)
    ran.stdout.fnmatch_lines(
        ["*= leakscope =*", "test_models.py::test_leaking: Tree: Violated: advantage ≤ 0.1: *"]
    )


def test_a_run_that_audits_nothing_imports_nothing_heavy(inner: pytest.Pytester) -> None:
    inner.makeconftest("")
    inner.makepyfile(
        """
        import sys
        def test_light(assert_private):
            assert not {"numpy", "scipy", "sklearn", "pandas", "rich"} & set(sys.modules)
            ours = {name for name in sys.modules if name.split(".")[0] == "leakscope"}
            assert ours == {"leakscope", "leakscope.testing", "leakscope.testing.plugin"}
        """
    )
    inner.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_the_plugin_is_loaded_by_its_entry_point_and_can_be_left_out() -> None:
    points = tomllib.loads(text_of("pyproject.toml"))["project"]["entry-points"]["pytest11"]
    assert points == {"leakscope": "leakscope.testing.plugin"}
    assert hasattr(import_module(points["leakscope"]), "pytest_addoption")


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [False, True])
def test_an_installed_plugin_is_found_and_left_out_by_its_name(tmp_path: Path, left_out) -> None:
    """A distribution of nothing but the entry point, beside the package."""
    info = tmp_path / "leakscope_point-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leakscope-point\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pytest11]\nleakscope = leakscope.testing.plugin\n")
    (info / "RECORD").write_text("")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["-p", "no:leakscope"] if left_out else []
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--fixtures", "-q", *words],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), SOURCE))},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ("assert_private" in ran.stdout) is not left_out


def test_a_folder_is_readable_short_and_its_own() -> None:
    assert folder_name("tests/test_a.py::test_b", 1) == "tests-test_a.py-test_b"
    assert folder_name("tests/test_a.py::test_b", 3) == "tests-test_a.py-test_b-3"
    odd = [folder_name(f"t.py::test[{name}]", 1) for name in ("a b", "a/b", "ä", "", "..", "a-b")]
    assert len(set(odd)) == len(odd)
    long = [folder_name("t.py::test_" + "x" * 300 + end, 2) for end in ("a", "b")]
    assert len(set(long)) == 2
    assert all(len(name) <= LONGEST + 12 for name in [*odd, *long])
    assert all(name.isascii() and "/" not in name for name in [*odd, *long])
    assert folder_name("../../x", 1).startswith("x-")
