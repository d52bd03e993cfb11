from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakscope.report.folders import check_folder, write_together
from leakscope.temporary import TemporaryFolder, locked, remove_folders, sweep_files, temporary_name

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is swept there")


@pytest.fixture(autouse=True)
def own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that nobody else uses."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def abandoned(folder: Path, name: str = "records.csv") -> Path:
    """A file that a killed run left."""
    path = folder / temporary_name(name)
    path.write_text("row,side\n0,member\n")
    return path


KILLED = """
import os, signal, sys
from pathlib import Path
from leakscope.report.folders import write_together
from leakscope.temporary import TemporaryFolder

kept = TemporaryFolder()
(kept.folder / "model.bin").write_bytes(b"model")

def lines():
    yield "row,side\\n0,member\\n" * 1000
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)

write_together(Path(sys.argv[1]), {"records.csv": lines()})
"""


@pytest.mark.parametrize("again", ["check", "write"])
def test_what_a_killed_run_left_is_swept(tmp_path: Path, own_tmp: Path, again: str) -> None:
    out = tmp_path / "out"
    environment = os.environ | {"TMPDIR": str(own_tmp)}
    ran = subprocess.run([sys.executable, "-c", KILLED, out], env=environment, check=False)
    assert ran.returncode == -9
    assert [one.suffix for one in out.iterdir()] == [".tmp"]
    assert len(list(own_tmp.iterdir())) == 1
    if again == "check":
        check_folder(out)
        assert list(own_tmp.iterdir()) == []
    else:
        write_together(out, {"records.csv": "row\n"})
    assert [one.name for one in out.iterdir()] == ([] if again == "check" else ["records.csv"])


def test_what_a_living_run_writes_is_left_alone(tmp_path: Path, own_tmp: Path) -> None:
    kept = TemporaryFolder()
    (kept.folder / "model.bin").write_bytes(b"model")

    def lines() -> Iterator[str]:
        yield "row\n" * 100_000
        check_folder(tmp_path)  # as another run that begins
        TemporaryFolder()
        yield "row\n"

    write_together(tmp_path, {"records.csv": lines()})
    assert (tmp_path / "records.csv").read_text().count("\n") == 100_001
    assert (kept.folder / "model.bin").exists()


def test_only_our_own_files_are_swept(tmp_path: Path, own_tmp: Path) -> None:
    others = [
        abandoned(tmp_path, "other.csv"),
        tmp_path / ".records.csv.0123.tmp",
        tmp_path / f"records.csv.{'0' * 32}.tmp",
        own_tmp / f"leakscope-datasets-{'0' * 32}",
    ]
    for path in others[1:]:
        path.write_text("mine")
    empty = tmp_path / temporary_name("records.csv")
    empty.touch()  # another run may be about to lock it
    secret = tmp_path / "secret"
    secret.write_text("keep")
    link = tmp_path / temporary_name("records.csv")
    link.symlink_to(secret)
    with abandoned(tmp_path).open() as held:
        assert locked(held.fileno())
        check_folder(tmp_path)
        assert Path(held.name).exists()
    assert all(path.exists() for path in (*others, empty, secret))
    assert link.is_symlink()
    sweep_files(tmp_path, ["records.csv"])
    assert not Path(held.name).exists()


def test_without_locks_nothing_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    left = abandoned(tmp_path)
    monkeypatch.setattr("fcntl.flock", refuse)
    check_folder(tmp_path)
    assert left.exists()
    write_together(tmp_path, {"records.csv": "row\n"})
    assert (tmp_path / "records.csv").read_text() == "row\n"


def test_folders_are_private_and_can_be_removed_at_once(
    own_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = TemporaryFolder()
    assert kept.folder.parent == own_tmp
    assert kept.folder.stat().st_mode & 0o077 == 0
    (kept.folder / "a").write_text("a")
    monkeypatch.setattr("leakscope.temporary._OWN", {kept.folder})
    remove_folders()
    assert not kept.folder.exists()
