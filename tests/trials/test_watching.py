from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import Toy

from leakscope.errors import ModelError
from leakscope.trials import watching
from leakscope.trials.store import Store
from leakscope.trials.watching import Watch, counted, estimate
from leakscope.trials.workers import Chunk, Job


def chunk_of(*keys: str) -> Chunk:
    roles = np.ones((len(keys), 2), dtype=np.int8)
    return Chunk(range(len(keys)), keys, range(len(keys)), roles, [["loss.npy"]] * len(keys))


def watch_of(folder: Path, chunks: Any, models: int) -> Watch:
    return Watch(Job(Toy(), {}, None, Store(folder), models, True), chunks)


def test_finished_models_are_counted_in_the_store(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, [chunk_of("a", "b"), chunk_of("c")], 10)
    assert watch.finished() == 7
    Store(tmp_path).finish("b", {"loss.npy": ""})
    assert watch.finished() == 8
    Store(tmp_path).finish("a", {"margin.npy": ""})
    assert watch.finished() == 8
    for key in "ac":
        Store(tmp_path).finish(key, {"loss.npy": ""})
    assert watch.finished() == 10


def test_it_tells_as_long_as_it_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK", 0.01)
    told: list[tuple[str, int, int]] = []
    watch = watch_of(tmp_path, [chunk_of("a", "b")], 2)
    with watch.telling("training", 1, lambda *what: told.append(what)):
        for key in "ab":
            Store(tmp_path).finish(key, {"loss.npy": ""})
            number = len(told)
            while len(told) < number + 2:
                time.sleep(0.001)
    # The last model is told by whoever goes on after it.
    assert told[-1][0].startswith("training 2 models, 0.0")
    assert sorted({said[1:] for said in told}) in ([(0, 2), (1, 2)], [(1, 2)])
    number = len(told)
    time.sleep(0.05)
    assert len(told) == number


def test_an_error_ends_the_telling(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, [chunk_of("a")], 1)
    with pytest.raises(ZeroDivisionError), watch.telling("training", 1, lambda *_: None):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("kept", "fresh", "said"),
    [
        (True, False, " and are kept in {}; run the same again to go on from there"),
        (
            True,
            True,
            " and are kept in {}; run the same again without fresh (--fresh) to go on from there",
        ),
        (False, False, ", and none is kept"),
    ],
)
def test_an_interrupt_says_how_to_go_on(tmp_path: Path, kept: bool, fresh: bool, said: str) -> None:
    watch = watch_of(tmp_path, [chunk_of("a")], 3)
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        watch.saying_what_is_kept(kept=kept, fresh=fresh),
    ):
        raise KeyboardInterrupt
    told = "Stopped: 2 of 3 models were finished" + said.format(repr(str(tmp_path)))
    assert str(caught.value) == told


def test_a_failure_says_what_is_kept(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, [chunk_of("a")], 3)
    with (
        pytest.raises(ModelError) as caught,
        watch.saying_what_is_kept(kept=True, fresh=False),
    ):
        raise ModelError("It is singular")
    told = f"It is singular; 2 of 3 models were finished and are kept in {str(tmp_path)!r}"
    assert str(caught.value) == told


def test_other_errors_pass(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, [chunk_of("a")], 3)
    with pytest.raises(ZeroDivisionError), watch.saying_what_is_kept(kept=True, fresh=False):
        raise ZeroDivisionError
    with watch.saying_what_is_kept(kept=True, fresh=False):
        pass


@pytest.mark.parametrize(
    ("seconds", "models", "workers", "said"),
    [
        (0.5, 3, 2, "3 models, 0.5 s each with 2 workers: about 1 s"),
        (0.5, 1, 1, "1 model, 0.5 s each with 1 worker: about 0.5 s"),
        (12.0, 8, 2, "8 models, 12 s each with 2 workers: about 48 s"),
        (60.0, 10, 5, "10 models, 60 s each with 5 workers: about 2.0 minutes"),
        (
            600.0,
            24,
            2,
            "24 models, 10.0 minutes each with 2 workers: about 2.0 hours",
        ),
        (7200.0, 48, 2, "48 models, 2.0 hours each with 2 workers: about 2.0 days"),
    ],
)
def test_how_long_it_will_take(seconds: float, models: int, workers: int, said: str) -> None:
    assert estimate(seconds, models, workers) == said + " in all"


def test_how_long_a_model_takes_is_told_once_one_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight models on two workers; after 4 s two are finished, so one takes 4 s and all 16 s."""
    clock = [100.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(watching, "LOOK", 0.01)
    monkeypatch.setattr(watching, "SELDOM", 0.02)
    told: list[tuple[str, int, int]] = []
    watch = watch_of(tmp_path, [chunk_of(*"abcdefgh")], 10)
    with watch.telling("training", 2, lambda *what: told.append(what)):
        while not told:
            pass
        clock[0] += 4.0
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        done = Store(tmp_path / "elsewhere")
        for key in "ab":
            done.finish(key, {"loss.npy": ""})
        (tmp_path / "elsewhere" / "a").rename(tmp_path / "a")
        while told[-1][1] == 2:
            pass
        (tmp_path / "elsewhere" / "b").rename(tmp_path / "b")
        while told[-1][1] < 4:
            pass
    assert told[0] == ("training 8 models with 2 workers", 2, 10)
    assert told[-1] == ("training 8 models, 4 s each with 2 workers: about 16 s in all", 4, 10)


def test_numbers_of_things() -> None:
    assert [counted(number, "worker") for number in (0, 1, 2, 1234)] == [
        "0 workers", "1 worker", "2 workers", "1,234 workers",
    ]  # fmt: skip
