"""The readers, given bytes and texts that nobody thought of: a value, or one sentence.

Inputs are good ones with a few bytes turned, cut out, put in or repeated, so that many of them pass
the first checks. hypothesis draws the same ones in every run (see tests/conftest.py).
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bad_input.answering import skops_file, weights
from bad_input.cases import A, text
from bad_input.reading import TABLE, report_text
from leakscope.cli import main
from leakscope.cli.tables import read_table
from leakscope.cli.texts import names_in
from leakscope.comparing.defending import as_combination
from leakscope.datasets.files import npz_names, read_idx, read_npz
from leakscope.datasets.unpickle import unpickle_bytes
from leakscope.errors import InputError, LeakscopeError
from leakscope.gate import check
from leakscope.gate.limits import figure_limits
from leakscope.models.files import open_model
from leakscope.models.torch_files import made_network
from leakscope.recipes import named_recipe
from leakscope.records import Records
from leakscope.report.reading import read_records

# The file is written anew for each input, so that one folder is enough for all of them.
FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
SOME = settings(FEW, max_examples=120)
MANY = settings(FEW, max_examples=250)


@st.composite
def spoiled(draw: Callable[..., Any], good: bytes, most: int = 4) -> bytes:
    """The bytes after a few edits."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        size = draw(st.integers(1, 24))
        edit = draw(st.sampled_from(["turn", "cut", "end", "put", "repeat"]))
        if edit == "turn" and data:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif edit == "cut":
            del data[place : place + size]
        elif edit == "end":
            del data[place:]
        elif edit == "put":
            data[place:place] = draw(st.binary(min_size=1, max_size=12))
        else:
            data[place:place] = data[place : place + size]
    return bytes(data)


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Nothing but what Leakscope raises on purpose, in one line that is not a book."""
    sentence = "none"
    try:
        yield
    except LeakscopeError as error:
        sentence = str(error)
    assert 0 < len(sentence) <= 600, sentence
    assert "\n" not in sentence.strip()


@MANY
@given(data=st.one_of(st.binary(max_size=200), spoiled(text(A[:6]).encode()), spoiled(b'y,"a"\n')))
def test_tables(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with one_sentence():
        table = read_table(path)
        assert isinstance(table, pd.DataFrame)
        # What the header says are columns must be columns.
        assert len(set(table.columns)) == len(table.columns)
        records = Records.from_frame(table, "y")
        assert len(records) == len(table)


@SOME
@given(data=spoiled(TABLE.encode()))
def test_records_of_a_run(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "records.csv").write_bytes(data)
    with one_sentence():
        table = read_records(tmp_path, ["loss"])
        assert {len(values) for values in table.columns.values()} == {len(table.columns["row"])}


REPORT = json.loads(report_text())
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from([1e308, -1e308, 0.0, 5e-324]),
    st.text(max_size=5),
    st.lists(st.integers(0, 1), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def places(thing: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a report, by the keys that lead there."""
    keys = (
        thing if isinstance(thing, dict) else range(len(thing)) if isinstance(thing, list) else ()
    )
    for key in keys:
        yield (*path, key)
        yield from places(thing[key], (*path, key))


@st.composite
def spoiled_report(draw: Callable[..., Any]) -> str:
    """A report in which a few values are others, or gone."""
    report = json.loads(report_text())
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from([*places(REPORT)]))
        thing = report
        with contextlib.suppress(KeyError, IndexError, TypeError):  # an edit before took it away
            for key in above:
                thing = thing[key]
            if draw(st.booleans()):
                thing[last] = draw(JUNK)
            else:
                del thing[last]
    return json.dumps(report)


@pytest.mark.slow
@MANY
@given(data=spoiled_report())
def test_reports_held_to_limits(data: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(data, "utf-8")
    with one_sentence():
        found = check(path, max_advantage=0.1, max_auc=0.6, max_tpr="0.02@0.01", baseline=path)
        assert found.exit_code in (0, 1, 3)
        json.dumps(found.to_dict(), allow_nan=False)
        found.to_junit()
        found.to_markdown()


@pytest.mark.slow
@FEW
@given(data=spoiled_report(), command=st.sampled_from(["check", "record"]))
def test_commands_about_reports(data: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(data, "utf-8")
    (tmp_path / "records.csv").write_text(TABLE, "utf-8")
    told, said = io.StringIO(), io.StringIO()
    words = ["--row", "0"] if command == "record" else []
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(said):
        code = main([command, str(tmp_path), *words])
    assert code in (0, 1, 2, 3)
    assert "run again with --debug" not in said.getvalue()
    if code == 2:
        assert told.getvalue() == ""
        assert said.getvalue().startswith("Error: ")


def npz_bytes() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.arange(12.0).reshape(4, 3), y=np.array([0, 1, 0, 1]))
    return file.getvalue()


@MANY
@given(data=spoiled(npz_bytes()))
def test_archives_of_arrays(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with one_sentence():
        names = npz_names(path)
        assert all(isinstance(name, str) for name in names)
        x, y = read_npz(path, "x", "y")
        assert x.nbytes + y.nbytes <= len(data)


IDX = bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in (2, 3, 4)) + bytes(24)


@SOME
@given(data=spoiled(IDX), dimensions=st.sampled_from([1, 3]))
def test_idx_files(data: bytes, dimensions: int, tmp_path: Path) -> None:
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(data)
    with one_sentence():
        assert read_idx(path, dimensions).ndim == dimensions


CIFAR = pickle.dumps({b"data": np.arange(12, dtype=np.uint8), b"fine_labels": [1, 2]}, protocol=2)


@MANY
@given(data=spoiled(CIFAR))
def test_pickles_of_pictures(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train"
    path.write_bytes(data)
    with one_sentence():
        assert isinstance(unpickle_bytes(path), dict)


@pytest.mark.parametrize("number", [b"r\xff\xff\xff\xff", b"q\xff", b"p4000000000\n"])
def test_a_pickle_of_few_bytes_is_given_no_room_for_many_parts(
    number: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "train"
    path.write_bytes(b"\x80\x02}" + number + b".")
    with pytest.raises(InputError, match=r"has a part numbered \d+ after 2 steps"):
        unpickle_bytes(path)


@FEW
@given(data=st.one_of(st.binary(min_size=1, max_size=60), spoiled(skops_file())))
def test_model_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.skops"
    path.write_bytes(data)
    with one_sentence():
        open_model(path)


def compact_bytes() -> bytes:
    from leakscope.networks.sparse import packed

    return packed(weights())


def test_compact_networks() -> None:
    """Refused, or the same numbers: never others."""
    import torch

    from leakscope.networks.sparse import unpacked

    good = compact_bytes()
    like = unpacked(good)

    @MANY
    @given(data=spoiled(good))
    def never_others(data: bytes) -> None:
        with one_sentence():
            found = unpacked(data)
            assert data == good
            assert all(torch.equal(found[name], tensor) for name, tensor in like.items())

    never_others()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:What is stored of model")
def test_stores_of_models(tmp_path: Path) -> None:
    """A damaged store gives the same numbers, by training again what cannot be used."""
    from leakscope.trials import random_halves, run_trials

    rng = np.random.default_rng(0)
    records = Records(rng.normal(size=(30, 2)), np.arange(30) % 2)
    roles = random_halves(30, 2, 0)

    def run() -> Any:
        trials = run_trials("tree", records, roles, ["loss"], store=tmp_path, workers=1)
        return np.asarray(trials.observations["loss"])

    expected = run()
    good = {path: path.read_bytes() for path in tmp_path.rglob("*.[bnj]*")}
    assert {path.suffix for path in good} == {".bin", ".npy", ".json"}

    @FEW
    @given(st.data())
    def same_numbers(drawn: st.DataObject) -> None:
        for path, content in good.items():
            path.write_bytes(content)
        path = drawn.draw(st.sampled_from(sorted(good)))
        path.write_bytes(drawn.draw(spoiled(good[path], most=2)))
        np.testing.assert_array_equal(run(), expected)

    same_numbers()


WORDS = st.sampled_from(
    ["noise", "prune", "none", "dpsgd", "forest", "mlp", "lenet5", "label", "nan", "inf", "1e999"]
)
MARKS = st.sampled_from([":", "+", ",", "@", "=", '"', "-", "0.1", "16", " ", "\0", "é", "٣", "²"])
WRITTEN = st.lists(st.one_of(WORDS, MARKS, st.text(max_size=3)), max_size=6).map("".join)

READERS: dict[str, Callable[[str], object]] = {
    "defenses": as_combination,
    "recipes": lambda text: named_recipe(text.replace(":", "")),
    "networks": made_network,
    "names": lambda text: names_in("attacks", text),
    "rates": lambda text: figure_limits(None, None, text),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_written_on_a_command_line(reader: str) -> None:
    @SOME
    @given(text=WRITTEN)
    def read(text: str) -> None:
        with one_sentence():
            READERS[reader](text)

    read()
