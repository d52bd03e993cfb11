"""skops files that were made by hand to do more than hold a model."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost

from leakscope.errors import InputError, LeakscopeError, UntrustedFileError
from leakscope.models import load_model, skops_files
from leakscope.records import unpacking

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
Y = (X[:, 0] > 0).astype(int)
XGB = xgboost.XGBClassifier(n_estimators=2, n_jobs=1)
LGB = lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1)

Node = dict[str, Any]


def node(name: str, loader: str, **more: Any) -> Node:
    module, _, of = name.rpartition(".")
    return {"__module__": module, "__class__": of, "__loader__": loader, **more}


def value(thing: Any, **more: Any) -> Node:
    return node("builtins.str", "JsonNode", content=json.dumps(thing), is_json=True, **more)


def several(*nodes: Node, of: str = "list") -> Node:
    return node(f"builtins.{of}", f"{of.capitalize()}Node", content=list(nodes))


def by_name(**nodes: Node) -> Node:
    keys = several(*[node("builtins.str", "TypeNode") for _ in nodes])
    return node("builtins.dict", "DictNode", content=nodes, key_types=keys)


def array(file: str, **more: Any) -> Node:
    return node("numpy.ndarray", "NdArrayNode", type="numpy", file=file, **more)


def npy(values: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def written(path: Path, schema: Node, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", json.dumps({**schema, "protocol": 2}))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that a model file has no business with: a booster that could be opened."""
    LGB.fit(X, Y).booster_.save_model(tmp_path / "secret.txt")
    return tmp_path / "secret.txt"


@pytest.mark.parametrize(
    "schema",
    [
        lambda path: node(
            "lightgbm.basic.Booster",
            "ConstructorFromReduceNode",
            content=several(value(None), value(None), value(path), of="tuple"),
        ),
        lambda path: node(
            "numpy.dtype",  # a name that is known, for a function with any arguments
            "PartialNode",
            content={
                "func": node("lightgbm.basic.Booster", "TypeNode"),
                "args": several(of="tuple"),
                "kwds": by_name(model_file=value(path)),
                "namespace": value(None),
            },
        ),
        lambda path: node("xgboost.core.Booster", "ListNode", content=[value(path)]),
    ],
    ids=["constructor", "partial", "list"],
)
def test_no_class_is_called_with_what_a_file_says(
    tmp_path: Path, secret: Path, schema: Any
) -> None:
    path = written(tmp_path / "model.skops", schema(str(secret)))
    with pytest.raises(UntrustedFileError, match=r"put together by '\w+', which could call it"):
        load_model(path)


def test_an_array_that_is_named_many_times_counts_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = npy(np.zeros(2**16, np.uint8))
    monkeypatch.setattr(unpacking, "LARGE", 2**20)
    monkeypatch.setattr(unpacking, "SWELLS", 1)
    few = written(tmp_path / "few.skops", several(*[array("a")] * 10), a=zeros)
    many = written(tmp_path / "many.skops", several(*[array("a")] * 20), a=zeros)
    shared = written(tmp_path / "same.skops", several(*[array("a", __id__=7)] * 20), a=zeros)
    for path in (few, shared):
        assert len(load_model(path)) in (10, 20)
    with pytest.raises(UntrustedFileError, match="would unpack to"):
        load_model(many)


def test_an_array_that_says_more_than_it_has(tmp_path: Path) -> None:
    lying = npy(np.zeros(4)).replace(b"(4,), }", b"(4000000000,), }")
    path = written(tmp_path / "model.skops", array("a"), a=lying)
    with pytest.raises(InputError, match=r"says it holds float64 of shape \(4000000000,\) in"):
        load_model(path)


def test_an_archive_within_the_archive(tmp_path: Path) -> None:
    name = "scipy.sparse._matrix.spmatrix"
    schema = node(name, "SparseMatrixNode", type="scipy", file="a")
    path = written(tmp_path / "model.skops", schema, a=b"PK")
    with pytest.raises(UntrustedFileError, match="holds a sparse matrix"):
        load_model(path)


def test_a_description_that_would_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "model.skops", several(*[value(None)] * 1000))
    assert len(load_model(path)) == 1000
    monkeypatch.setattr(skops_files, "LONGEST_SCHEMA", 10_000)
    with pytest.raises(UntrustedFileError, match=r"a description of [\d,]+ bytes"):
        load_model(path)


@pytest.mark.parametrize("model", [XGB, LGB], ids=["xgboost", "lightgbm"])
def test_boosters_load_as_they_were_saved(tmp_path: Path, model: Any) -> None:
    # The same booster twice, under two names: skops writes its bytes twice.
    skops.io.dump([model.fit(X, Y)] * 2, tmp_path / "model.skops")
    for loaded in load_model(tmp_path / "model.skops"):
        np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X))


def crossed(handle: Any) -> Any:
    """A handle whose first tree leads to a node that it has not."""
    if isinstance(handle, str):
        lines = handle.replace("left_child=", "left_child=9").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("tree_sizes="))
    at = handle.index(b"left_children[$l#L") + len(b"left_children[$l#L") + 8
    handle[at : at + 4] = (10**6).to_bytes(4, "big")
    return handle


def state(library: str, damage: Any = lambda handle: handle) -> tuple[str, str, Any]:
    """The class, the name of its handle, and the handle of a small model."""
    if library == "xgboost":
        held = XGB.fit(X, Y).get_booster().__getstate__()["handle"]
        return "xgboost.core.Booster", "handle", damage(held)
    return "lightgbm.basic.Booster", "_handle", damage(LGB.fit(X, Y).booster_.model_to_string())


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("how", ["plain", "array", "alias", "cached"])
def test_a_booster_that_would_crash_is_refused(tmp_path: Path, library: str, how: str) -> None:
    of, name, handle = state(library, crossed)
    files = {"b": bytes(handle)} if library == "xgboost" else {}
    held = (
        node("builtins.bytearray", "BytearrayNode", file="b", __id__=5)
        if library == "xgboost"
        else value(handle, __id__=5)
    )
    first: Node = value(None)
    if how == "array":  # what is no text and no bytearray is taken just as well
        whole = np.frombuffer(handle, np.uint8) if library == "xgboost" else np.array(handle)
        files = {"b": npy(whole)}
        held = array("b") if library == "xgboost" else {**array("b"), "__class__": "str_"}
    elif how == "alias":  # skops takes the first part with an id, whatever the others say
        first, held = held, value(None, __id__=5)
    elif how == "cached":
        first, held = held, node("builtins.str", "CachedNode", __id__=5)
    booster = node(of, "ObjectNode", content=by_name(**{name: held}))
    path = written(tmp_path / "model.skops", several(first, booster), **files)
    refused = r"holds a Booster that .* could crash" if how in ("plain", "array") else "stands for"
    with pytest.raises(UntrustedFileError, match=refused):
        load_model(path)


@pytest.mark.parametrize("loader", [{"__loader__": "JsonNode"}, {}], ids=["loader", "none"])
@pytest.mark.parametrize("of", ["list", "tuple"])
def test_parts_that_are_made_of_one_twice_are_refused_at_once(
    tmp_path: Path, of: str, loader: dict[str, str]
) -> None:
    thing = value(1)
    for level in range(1, 60):
        name = (level, float(level), str(level))[level % 3]
        stub = {"__id__": name, "__module__": "", "__class__": "", **loader}
        thing = several({**thing, "__id__": name}, stub, of=of)
    path = written(tmp_path / "model.skops", thing)
    for trust in (False, True):
        with pytest.raises(UntrustedFileError, match="has a part that stands for another"):
            load_model(path, trust_pickle=trust)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_state_of_another_type_is_refused(tmp_path: Path, library: str) -> None:
    of, name, _ = state(library)
    path = tmp_path / "model.skops"
    for held in (value({name: "tree"}), several(), array("a")):
        written(path, node(of, "ObjectNode", content=held), a=npy(np.zeros(1)))
        with pytest.raises(UntrustedFileError, match="holds a Booster that has no state"):
            load_model(path)


def test_whatever_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    for schema in (
        {"__loader__": "JsonNode"},
        {"__loader__": ["JsonNode"], "__module__": "numpy", "__class__": "dtype"},
        {"__loader__": "NdArrayNode", "type": "numpy", "file": "none"},
        {"__loader__": "NdArrayNode", "type": "numpy", "file": {}},
        {"__loader__": "ObjectNode", "__module__": "xgboost.core", "__class__": "Booster"},
        {"__loader__": "ListNode", "content": 3, "__module__": "builtins", "__class__": "list"},
    ):
        with pytest.raises(LeakscopeError) as caught:
            load_model(written(path, schema))
        assert "\n" not in str(caught.value)
