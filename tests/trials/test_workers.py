from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from threadpoolctl import threadpool_info
from toys import Centroids, Together, Toy, draw_records

from leakscope.channels.outputs import Label, Loss, Margin
from leakscope.errors import InputError, ModelError, StoreError
from leakscope.protocols import Model
from leakscope.trials import workers
from leakscope.trials.packing import pack, unpack
from leakscope.trials.store import MODEL, Store
from leakscope.trials.workers import Chunk, Finished, Job

RECORDS = draw_records(40)
CLASSES = np.array([0, 1])
FILES = {"margin.npy": Margin(), "loss.npy": Loss()}


def work(job: Job, chunk: Chunk, records: Any) -> Finished:
    [finished] = workers.work(job, [chunk], records)
    return finished


def job_of(folder: Path, recipe: Any = None, **changes: Any) -> Job:
    parts = {"recipe": recipe or Toy(), "channels": FILES, "classes": CLASSES, "models": 9}
    return Job(**{**parts, "store": Store(folder), "keep_models": True, **changes})


def chunk_of(models: int = 1, wanted: Any = tuple(FILES)) -> Chunk:
    roles = np.ones((models, len(RECORDS)), dtype=np.int8)
    roles[:, ::3] = 0
    keys = [f"key{number}" for number in range(models)]
    return Chunk(range(4, 4 + models), keys, range(models), roles, [wanted] * models)


def trainings(journal: Path) -> list[int]:
    return [int(line) for line in journal.read_text().split()] if journal.exists() else []


def test_a_model_is_trained_observed_and_written(tmp_path: Path) -> None:
    job, chunk = job_of(tmp_path), chunk_of()
    told = work(job, chunk, RECORDS)
    assert (told.unusable, told.unkept) == ((), ())
    assert sorted(job.store.listed("key0")) == ["loss.npy", "margin.npy", MODEL]
    [model] = Toy().fit_many(RECORDS, chunk.roles, [0])
    for name, channel in FILES.items():
        seen = np.load(job.store.path("key0", name))
        assert np.array_equal(seen, channel.observe(model, RECORDS))
    assert job.store.model("key0") == b"".join(pack(model) or ())


def test_what_is_finished_is_not_touched(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    job = job_of(tmp_path, Toy(journal=journal))
    work(job, chunk_of(), RECORDS)
    assert work(job, chunk_of(), RECORDS) == Finished()
    assert trainings(journal) == [0]


def test_another_channel_observes_the_model_that_is_there(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    job = job_of(tmp_path, Toy(journal=journal))
    work(job, chunk_of(wanted=["loss.npy"]), RECORDS)
    before = job.store.path("key0", MODEL).stat()
    told = work(job, chunk_of(wanted=["margin.npy"]), RECORDS)
    assert (told.unusable, told.unkept) == ((), ())
    assert trainings(journal) == [0]
    assert sorted(job.store.listed("key0")) == ["loss.npy", "margin.npy", MODEL]
    assert job.store.path("key0", MODEL).stat().st_mtime_ns == before.st_mtime_ns


def test_models_need_not_be_kept(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    job = job_of(tmp_path, Toy(journal=journal), keep_models=False)
    assert work(job, chunk_of(wanted=["loss.npy"]), RECORDS).unkept == ()
    assert list(job.store.listed("key0")) == ["loss.npy"]
    assert not job.store.path("key0", MODEL).exists()
    # Another channel then has to train, and that is no damage.
    assert work(job, chunk_of(wanted=["margin.npy"]), RECORDS).unusable == ()
    assert trainings(journal) == [0, 0]


def spoil_bytes(store: Store) -> None:
    store.path("key0", MODEL).write_bytes(b"spoiled")


def spoil_mode(store: Store) -> None:
    store.path("key0", MODEL).chmod(0o666)


def spoil_content(store: Store) -> None:
    store.finish("key0", store.write_model("key0", [b"not a pickle, and listed as it is"]))


@pytest.mark.parametrize("spoil", [spoil_bytes, spoil_mode, spoil_content])
def test_a_model_that_cannot_be_used_is_trained_again(
    tmp_path: Path, spoil: Callable[[Store], None]
) -> None:
    job = job_of(tmp_path)
    work(job, chunk_of(wanted=["loss.npy"]), RECORDS)
    good = job.store.model("key0")
    spoil(job.store)
    assert work(job, chunk_of(wanted=["margin.npy"]), RECORDS).unusable == (4,)
    assert job.store.model("key0") == good


class Unwritable(Centroids):
    """A model that no file can hold."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot be written")


class OfUnwritable(Toy):
    def fit_many(self, records: Any, roles: Any, seeds: Any) -> list[Model]:
        return [Unwritable(records.X, records.y, seed, 1.0) for seed in seeds]


def test_a_model_that_cannot_be_written_is_observed_and_said(tmp_path: Path) -> None:
    job = job_of(tmp_path, OfUnwritable())
    assert work(job, chunk_of(), RECORDS).unkept == (4,)
    assert sorted(job.store.listed("key0")) == sorted(FILES)


def test_models_that_are_trained_together_are_fetched_one_by_one(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    job = job_of(tmp_path, Together(journal=journal))
    work(job, chunk_of(3, wanted=["loss.npy"]), RECORDS)
    whole = {key: job.store.model(key) for key in chunk_of(3).keys}
    assert trainings(journal) == [0, 1, 2]
    # The second was never finished: all three are trained, and that alone is written.
    job.store.unlist("key1")
    job.store.path("key1", MODEL).write_bytes(b"half")
    asked = chunk_of(3)
    chunk = Chunk(asked.numbers, asked.keys, asked.seeds, asked.roles, [[], ["loss.npy"], []])
    before = job.store.path("key0", MODEL).stat().st_mtime_ns
    assert work(job, chunk, RECORDS).unusable == ()
    assert trainings(journal) == [0, 1, 2] * 2
    assert {key: job.store.model(key) for key in asked.keys} == whole
    assert job.store.path("key0", MODEL).stat().st_mtime_ns == before
    # A sound model beside one that is missing is not said to be damaged.
    job.store.unlist("key1")
    assert work(job, chunk_of(3, wanted=["margin.npy"]), RECORDS).unusable == ()
    # All of them are there again, but for the observations of the second.
    told = work(job, chunk_of(3, wanted=["loss.npy", "margin.npy"]), RECORDS)
    assert (told.unusable, len(trainings(journal))) == ((), 9)


def test_the_message_of_the_estimator_the_number_and_the_seed(tmp_path: Path) -> None:
    forbidden = tmp_path / "forbidden"
    forbidden.write_text("0 raise")
    job = job_of(tmp_path, Toy(forbidden=forbidden))
    with pytest.raises(ModelError) as caught:
        work(job, chunk_of(), RECORDS)
    told = "Model 4 of 9 (counting from 0, seed 0) could not be trained: the matrix is singular"
    assert str(caught.value) == told
    together = job_of(tmp_path, Together(forbidden=forbidden))
    with pytest.raises(ModelError, match=r"^One of the models 4 to 6 of 9 \(counting from 0, seed"):
        work(together, chunk_of(3), RECORDS)


class Refusing(Toy):
    def fit_many(self, records: Any, roles: Any, seeds: Any) -> list[Model]:
        raise InputError("The rows are 3, 4 and 5. Give others")


def test_a_sentence_of_leakscope_is_passed_on_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"trained: The rows are 3, 4 and 5\. Give others$"):
        work(job_of(tmp_path, Refusing()), chunk_of(), RECORDS)


class Counting(Toy):
    def fit_many(self, records: Any, roles: Any, seeds: Any) -> list[Model]:
        return super().fit_many(records, roles, seeds) * 2


def test_as_many_models_as_rows(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'toy' made 2 models of 1 rows of roles"):
        work(job_of(tmp_path, Counting()), chunk_of(), RECORDS)


class Strange(Loss):
    """A channel that shows something else."""

    name: ClassVar[str] = "strange"
    shows: Any = None

    def observe(self, model: Any, records: Any) -> Any:
        if isinstance(self.shows, Exception):
            raise self.shows
        return self.shows


@pytest.mark.parametrize(
    ("shows", "said"),
    [
        (np.zeros(40), "The strange channel shows numbers of shape (40,), 0 not finite, of model"),
        (np.zeros((3, 1)), "shape (3, 1), 0 not finite"),
        (np.full((40, 2), np.nan), "shape (40, 2), 80 not finite"),
        (ValueError("no.\nMore"), "The strange channel cannot be observed on model 4 of 9 "
         "(counting from 0, seed 0): no"),
        (InputError("No. 4 is odd"), "(counting from 0, seed 0): No. 4 is odd"),
        ([["text"]], "could not convert string to float"),
    ],
)  # fmt: skip
def test_a_channel_that_shows_no_numbers(tmp_path: Path, shows: Any, said: str) -> None:
    channel = Strange()
    object.__setattr__(channel, "shows", shows)
    job = job_of(tmp_path, channels={"strange.npy": channel})
    with pytest.raises(ModelError) as caught:
        work(job, chunk_of(wanted=["strange.npy"]), RECORDS)
    assert said in str(caught.value)
    # What was trained is kept, so that mending the channel needs no training.
    assert list(job.store.listed("key0")) == [MODEL]


class Whole(Strange):
    """A channel that shows something of the model as a whole."""

    scope: ClassVar[Literal["record", "model"]] = "model"


def test_a_channel_of_the_whole_model_shows_one_row(tmp_path: Path) -> None:
    channel = Whole()
    job = job_of(tmp_path, channels={"whole.npy": channel})
    object.__setattr__(channel, "shows", np.zeros((40, 1)))
    with pytest.raises(ModelError, match=r"shape \(40, 1\), .* a finite row for the model is"):
        work(job, chunk_of(wanted=["whole.npy"]), RECORDS)
    object.__setattr__(channel, "shows", np.arange(3.0)[None])
    work(job, chunk_of(wanted=["whole.npy"]), RECORDS)
    np.testing.assert_array_equal(np.load(job.store.path("key0", "whole.npy")), [[0, 1, 2]])


def test_classes_that_no_column_is_there_for(tmp_path: Path) -> None:
    job = job_of(tmp_path, classes=np.array([0, 7]))
    with pytest.raises(ModelError, match=r"on model 4 of 9 \(counting from 0, seed 0\): .*class 1"):
        work(job, chunk_of(), RECORDS)


def test_a_disk_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StoreError("full")

    monkeypatch.setattr(Store, "write_model", full)
    job = job_of(tmp_path)
    with pytest.raises(StoreError, match="full"):
        work(job, chunk_of(), RECORDS)
    assert job.store.listed("key0") == {}


class Looking(Toy):
    """A recipe that looks how many threads it has."""

    threads: ClassVar[set[int]] = set()

    def fit_many(self, records: Any, roles: Any, seeds: Any) -> list[Model]:
        self.threads.update(pool["num_threads"] for pool in threadpool_info())
        return super().fit_many(records, roles, seeds)


def test_one_thread_for_each_worker(tmp_path: Path) -> None:
    Looking.threads.clear()
    work(job_of(tmp_path, Looking()), chunk_of(), RECORDS)
    assert {1} >= Looking.threads
    workers._thread_pools.cache_clear()


def test_labels_are_observed_too(tmp_path: Path) -> None:
    job = job_of(tmp_path, channels={"label.npy": Label()})
    work(job, chunk_of(wanted=["label.npy"]), RECORDS)
    model = unpack(job.store.model("key0") or b"")
    seen = np.load(job.store.path("key0", "label.npy"))
    assert np.array_equal(seen[:, 0], model.predict(RECORDS.X))


def test_a_model_that_took_long_is_written_before_it_is_observed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LONG", -1.0)
    listed: list[list[str]] = []
    job = job_of(tmp_path, channels=dict(FILES))

    class Looking:
        name = "looking"

        def observe(self, model: Any, records: Any) -> Any:
            listed.append(list(job.store.listed("key0")))
            return np.zeros((len(records), 1))

    job.channels["loss.npy"] = Looking()  # type: ignore[assignment]
    assert work(job, chunk_of(), RECORDS) == Finished()
    assert listed == [[MODEL]]
    assert sorted(job.store.listed("key0")) == ["loss.npy", "margin.npy", MODEL]


def test_an_error_of_the_writer_stops_the_next_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []

    class Counting(Toy):
        def fit_many(self, records: Any, roles: Any, seeds: Any) -> Any:
            trained.extend(seeds)
            return super().fit_many(records, roles, seeds)

    def full(*_: Any, **__: Any) -> Any:
        raise StoreError("The disk is full")

    monkeypatch.setattr(Store, "write_observations", full)
    chunks = [replace(chunk_of(), keys=[f"key{one}"], seeds=[one]) for one in range(5)]
    with pytest.raises(StoreError, match="The disk is full"):
        workers.work(job_of(tmp_path, Counting()), chunks, RECORDS)
    assert trained == [0, 1]
    assert list(Store(tmp_path).listed("key0")) == [MODEL]
