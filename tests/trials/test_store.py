from __future__ import annotations

import builtins
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.errors import StoreError
from leakscope.trials.store import DONE, LOCK, MANIFEST, MODEL, Store

KEY = "0123456789abcdef" * 2


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one finished model."""
    made = Store(tmp_path / "store")
    made.folder.mkdir()  # as whoever leads a run does
    written = made.write_model(KEY, [b"the model"])
    written |= made.write_observations(KEY, "loss.npy", np.arange(6.0).reshape(3, 2))
    made.finish(KEY, written)
    return made


def test_a_finished_model_is_listed_with_the_checksums_of_its_files(store: Store) -> None:
    done = json.loads(store.path(KEY, DONE).read_text())
    assert done == {
        "schema": 1,
        "key": KEY,
        "files": {
            name: hashlib.sha256(store.path(KEY, name).read_bytes()).hexdigest()
            for name in ("loss.npy", MODEL)
        },
    }
    assert store.listed(KEY) == done["files"]
    assert store.has(KEY, ["loss.npy"])
    assert store.has(KEY, [])
    assert not store.has(KEY, ["loss.npy", "margin.npy"])
    assert store.sound(KEY, "loss.npy")
    assert store.model(KEY) == b"the model"
    assert not store.spoiled(KEY)
    assert np.array_equal(np.load(store.path(KEY, "loss.npy")), np.arange(6.0).reshape(3, 2))


def test_what_is_not_there(store: Store) -> None:
    assert store.listed("other") == {}
    assert not store.has("other", ["loss.npy"])
    assert not store.sound("other", "loss.npy")
    assert not store.sound(KEY, "margin.npy")
    assert store.model("other") is None
    assert not store.spoiled("other")


def test_a_file_that_is_there_and_not_listed_does_not_count(store: Store) -> None:
    store.write_observations(KEY, "margin.npy", np.zeros((3, 1)))
    store.write_model("other", [b"half a run"])
    assert not store.has(KEY, ["margin.npy"])
    assert not store.sound(KEY, "margin.npy")
    assert store.model("other") is None


def test_another_channel_is_entered_beside_the_first(store: Store) -> None:
    store.finish(KEY, store.write_observations(KEY, "margin.npy", np.zeros((3, 1))))
    assert list(store.listed(KEY)) == ["loss.npy", "margin.npy", MODEL]


def test_files_are_taken_off_the_list(store: Store) -> None:
    store.unlist(KEY, ["loss.npy", "margin.npy"])
    assert list(store.listed(KEY)) == [MODEL]
    store.unlist(KEY)
    assert store.listed(KEY) == {}
    assert not store.spoiled(KEY)
    store.unlist("other")
    assert not store.path("other", DONE).exists()


@pytest.mark.parametrize("damage", [b"", b"the m", b"the modem", b"the model and more"])
def test_a_damaged_file_is_found(store: Store, damage: bytes) -> None:
    store.path(KEY, MODEL).write_bytes(damage)
    assert not store.sound(KEY, MODEL)
    assert store.model(KEY) is None
    assert store.sound(KEY, "loss.npy")


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "null", "{}", '{"files": []}', '{"files": null}', "\udcff"]
)
def test_a_damaged_list_is_found(store: Store, damage: str) -> None:
    store.path(KEY, DONE).write_bytes(damage.encode(errors="surrogateescape"))
    assert store.listed(KEY) == {}
    assert store.spoiled(KEY)
    assert store.model(KEY) is None


def test_a_model_can_be_read_and_written_by_its_owner_alone(store: Store) -> None:
    assert store.path(KEY, MODEL).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_model_that_others_can_write_is_not_taken(store: Store, mode: int) -> None:
    store.path(KEY, MODEL).chmod(mode)
    assert store.model(KEY) is None
    assert store.sound(KEY, MODEL)
    store.path(KEY, MODEL).chmod(0o644)
    assert store.model(KEY) == b"the model"


def test_a_model_of_another_owner_is_not_taken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: store.path(KEY, MODEL).stat().st_uid + 1)
    assert store.model(KEY) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_model_given_to_another_owner_is_not_taken(store: Store) -> None:
    os.chown(store.path(KEY, MODEL), 12345, 12345)
    assert store.model(KEY) is None


def test_a_link_to_a_model_is_not_taken(store: Store, tmp_path: Path) -> None:
    store.path(KEY, MODEL).rename(tmp_path / "elsewhere")
    store.path(KEY, MODEL).symlink_to(tmp_path / "elsewhere")
    assert store.sound(KEY, MODEL)
    assert store.model(KEY) is None


def test_where_files_have_no_owners_the_checksum_decides(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.path(KEY, MODEL).chmod(0o666)
    monkeypatch.delattr(os, "geteuid")
    assert store.model(KEY) == b"the model"
    store.path(KEY, MODEL).write_bytes(b"another")
    assert store.model(KEY) is None


def test_a_write_that_fails_leaves_the_old_file_and_no_half(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"cannot be written to \(Input/output error\)"):
        store.write_model(KEY, [b"a new model"])
    assert store.model(KEY) == b"the model"
    assert sorted(path.name for path in store.path(KEY, "").iterdir()) == [
        DONE, "loss.npy", MODEL,
    ]  # fmt: skip


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_has_a_sentence_of_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError) as caught:
        store.finish(KEY, {"margin.npy": ""})
    assert str(caught.value) == (
        f"The disk of {str(store.folder)!r} is full ({os.strerror(code)}); make room and run the "
        "same again: the models that are finished are kept"
    )
    assert store.has(KEY, [MODEL, "loss.npy"])


def test_a_write_syncs_before_it_renames(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        done.append("sync")
        sync(handle)

    def replaced(source: Path, target: Path) -> None:
        done.append("rename")
        assert source.read_bytes() == b"a new model"
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    store.write_model(KEY, [b"a new model"])
    assert done == ["sync", "rename"]


@pytest.mark.parametrize("at_once", [1, 4, 7, 1 << 20])
def test_small_parts_are_joined_and_large_ones_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("leakscope.trials.store.AT_ONCE", at_once)
    parts = [b"", b"ab", memoryview(b"cde"), b"", b"f", b"a large part", b"gh", b"i"]
    digests = store.write_model(KEY, parts)
    assert store.path(KEY, MODEL).read_bytes() == b"abcdefa large partghi"
    assert digests == {MODEL: hashlib.sha256(b"abcdefa large partghi").hexdigest()}


def test_a_system_may_write_less_than_it_is_given(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
    store.write_model(KEY, [b"a new model"])
    assert store.path(KEY, MODEL).read_bytes() == b"a new model"


def test_the_manifest_is_written_where_it_has_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_manifest({"models": 2})
    assert json.loads((store.folder / MANIFEST).read_text()) == {"models": 2}
    store.write_manifest({"models": 3})
    assert json.loads((store.folder / MANIFEST).read_text()) == {"models": 3}
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("the disk may be full"))
    store.write_manifest({"models": 3})


def test_one_run_leads(store: Store) -> None:
    with store.leading():
        with pytest.raises(StoreError) as caught, Store(store.folder).leading():
            pytest.fail("a second run began")
        assert str(caught.value) == (
            f"Another run is training models in {str(store.folder)!r}; wait for it, or choose "
            "another folder"
        )
    with store.leading():
        pass
    assert (store.folder / LOCK).read_bytes() == b""


def test_a_run_that_failed_leads_no_longer(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.leading():
        raise ZeroDivisionError
    with store.leading():
        pass


def test_what_was_left_half_written_goes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    half = store.path(KEY, ".model.bin.0123456789abcdef.tmp")
    half.write_bytes(b"the m")
    others = [store.path(KEY, "mine.tmp"), store.path(KEY, ".mine.tmp")]
    others += [store.folder / ".0123456789abcdef.tmp", store.path("notes", half.name)]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(b"somebody's")
    with store.leading():
        assert not half.exists()
        half.write_bytes(b"of a worker that was killed during the run")
    assert not half.exists()
    assert all(other.exists() for other in others)
    assert store.model(KEY) == b"the model"
    # One that cannot be taken away, or has gone meanwhile, is in nobody's way.
    half.write_bytes(b"the m")

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    with store.leading():
        assert half.exists()


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_folder_that_cannot_be(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / below
    with pytest.raises(StoreError, match=r"cannot be written to \(.+\); give another one"):
        Store(folder).write_manifest({})
    with (
        pytest.raises(StoreError, match=r"cannot be written to \(.+\); give another one"),
        Store(folder).leading(),
    ):
        pytest.fail("a run began in a file")


def without_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def load(name: str, *rest: Any) -> Any:
        if name == "fcntl":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", load)


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)


@pytest.mark.parametrize("lack", [without_fcntl, without_locks])
def test_where_there_are_no_locks_runs_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch, lack: Callable[[pytest.MonkeyPatch], None]
) -> None:
    lack(monkeypatch)
    with store.leading(), Store(store.folder).leading():
        assert store.model(KEY) == b"the model"


def test_a_folder_under_another_key_is_not_believed(store: Store) -> None:
    another = "f" * 32
    shutil.copytree(store.folder / KEY, store.folder / another)
    assert store.listed(another) == {}
    assert store.spoiled(another)
    store.path(another, DONE).write_text("[" * 100_000)
    assert store.spoiled(another)


@pytest.mark.skipif(os.name != "posix", reason="folders have other rights elsewhere")
def test_a_finished_store_can_be_read_where_nothing_can_be_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.leading():
        pass
    opened = Path.open

    def refuse(self: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if mode != "rb":
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(self, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", refuse)
    with store.leading():
        assert store.model(KEY) == b"the model"
