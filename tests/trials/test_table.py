from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.errors import ModelError
from leakscope.temporary import TemporaryFolder
from leakscope.trials.table import StoredStack, Trials


def stack_of(folder: Path, values: Any) -> StoredStack:
    files = []
    for number, seen in enumerate(values):
        files.append(folder / f"{number}.npy")
        np.save(files[-1], seen)
    return StoredStack(files)


@pytest.fixture
def values() -> Any:
    return np.random.default_rng(0).normal(size=(5, 7, 3))


MASK = np.array([True, False, True, True, False])
INDICES = [
    np.s_[:],
    np.s_[()],
    np.s_[...],
    np.s_[1:4],
    np.s_[::-2],
    np.s_[4:1],
    np.s_[2],
    np.s_[-1],
    np.s_[np.int64(3)],
    np.s_[[3, 1, 1]],
    np.s_[np.array([-1, 0])],
    np.s_[np.array([], dtype=int)],
    np.s_[MASK],
    np.s_[np.zeros(5, dtype=bool)],
    np.s_[:, 2:5],
    np.s_[:, 3],
    np.s_[:, [6, 0]],
    np.s_[:, np.arange(7) > 3],
    np.s_[:, :, 0],
    np.s_[..., 0],
    np.s_[..., 1:],
    np.s_[:, ..., 2],
    np.s_[1, ...],
    np.s_[2, 3],
    np.s_[2, 3, 1],
    np.s_[2, :, [1]],
    np.s_[2, [0, 1], [1, 2]],
    np.s_[:, [0, 1], [1, 2]],
    np.s_[1:3, 0, [0]],
    np.s_[MASK, 1:3],
    np.s_[MASK, 4],
    np.s_[[1, 2], :, 0],
    np.s_[[1, 2], 3, 0],
    np.s_[[1, 4, 1], [3, 0, 6]],
    np.s_[[1, 4], :, [2, 0]],
    np.s_[[[1], [4]], [0, 6]],
    np.s_[np.array([[0, 1], [4, 4]])],
    np.s_[MASK, [0, 6, 2]],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_it_is_indexed_as_an_array(tmp_path: Path, values: Any, index: Any) -> None:
    given = stack_of(tmp_path, values)[index]
    assert np.shape(given) == np.shape(values[index])
    assert np.array_equal(given, values[index])
    assert not isinstance(given, np.memmap)


@pytest.mark.parametrize(
    "index", [5, -6, [0, 5], (0, 7), (0, 0, 3), (0, 0, 0, 0), (..., ...), None, (0, None), "loss"]
)
def test_what_is_no_index(tmp_path: Path, values: Any, index: Any) -> None:
    stack = stack_of(tmp_path, values)
    with pytest.raises(IndexError):
        stack[index]


def test_it_has_the_shape_of_an_array_and_becomes_one(tmp_path: Path, values: Any) -> None:
    stack = stack_of(tmp_path, values)
    assert stack.shape == (5, 7, 3)
    assert len(stack) == 5
    assert np.array_equal(np.asarray(stack), values)
    assert np.array_equal(np.array(stack, copy=True), values)
    assert np.asarray(stack, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(stack, copy=False)


def test_what_is_read_can_be_written_to(tmp_path: Path, values: Any) -> None:
    stack = stack_of(tmp_path, values)
    for index in (0, np.s_[:], np.s_[[0, 1], [2, 3]]):
        stack[index][:] = 0.0
    assert np.array_equal(np.asarray(stack), values)


def test_no_code_is_run_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        StoredStack([tmp_path / "0.npy"])[0]


def test_models_of_another_size_are_never_read_as_if_they_were_of_one(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.npy" for number in range(4)]
    for file, size in zip(files, (7, 7, 8, 7), strict=True):
        np.save(file, np.arange(size, dtype=np.float64)[None])
    assert StoredStack(files[:2]).shape == (2, 1, 7)
    said = (
        r"Model 2 \(counting from 0\) shows numbers of shape \(1, 8\) where model 0 shows \(1, 7\)"
    )
    for ask in (lambda stack: stack.shape, lambda stack: stack[3], np.asarray):
        with pytest.raises(ModelError, match=said):
            ask(StoredStack(files))


def limited(code: str, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_three_hundred_models_need_no_three_hundred_open_files(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    stack_of(tmp_path, np.arange(300.0)[:, None, None] * np.ones((300, 4, 1)))
    limited(
        f"""
import resource
from pathlib import Path
import numpy as np
from leakscope.trials.table import StoredStack
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
stack = StoredStack([Path({str(tmp_path)!r}) / f"{{number}}.npy" for number in range(300)])
for part in (stack[:, 1:3], stack[:], stack[np.arange(300), 1:3], stack[np.arange(300), [0] * 300]):
    assert part.reshape(300, -1)[:, 0].tolist() == list(range(300))
""",
        environment,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_a_thousand_models_of_a_hundred_thousand_records_need_not_fit_in_memory(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """800 MB of observations, read in parts by a process that may take 300 MB more than it has."""
    for number in range(1000):
        # A file with a hole: as long as the array, and next to nothing on the disk.
        file = np.lib.format.open_memmap(
            tmp_path / f"{number}.npy", mode="w+", dtype=np.float64, shape=(100_000, 1)
        )
        file[99_999] = number
        del file
    limited(
        f"""
import resource
from pathlib import Path
import numpy as np
from leakscope.trials.table import StoredStack
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
stack = StoredStack([Path({str(tmp_path)!r}) / f"{{number}}.npy" for number in range(1000)])
assert stack.shape == (1000, 100_000, 1)
total = np.zeros(1000)
for start in range(90_000, 100_000, 5_000):
    total += stack[:, start:start + 5_000].sum(axis=(1, 2))
assert total.tolist() == list(range(1000))
try:
    stack[:]
except MemoryError:
    pass
else:
    raise AssertionError("the limit does not bind")
""",
        environment,
    )


@pytest.mark.slow
def test_a_temporary_folder_lasts_as_long_as_it_is_held(tmp_path: Path) -> None:
    keeper = TemporaryFolder()
    folder = keeper.folder
    np.save(folder / "0.npy", np.ones((2, 1)))
    stack = StoredStack([folder / "0.npy"], keeper)
    trials = Trials(np.ones((1, 2), dtype=np.int8), {"loss": stack}, [0], folder, keeper)
    del keeper, trials
    gc.collect()
    assert stack[0].tolist() == [[1.0], [1.0]]
    del stack
    gc.collect()
    assert not folder.exists()


def test_membership_is_role_one() -> None:
    roles = np.array([[0, 1, 2], [1, 1, 0]], dtype=np.int8)
    trials = Trials(roles, {}, [3, 4])
    assert len(trials) == 2
    assert trials.membership.tolist() == [[False, True, False], [True, True, False]]
    assert trials.membership.dtype == np.bool_
