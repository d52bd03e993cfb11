from __future__ import annotations

import gzip
import io
import os
import pickle
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file, save_model
from torch import nn

from leakscope.errors import InputError, MissingExtraError, UnknownNameError, UntrustedFileError
from leakscope.models import as_model, load_model
from leakscope.models.files import open_model
from leakscope.models.torch_files import Weights, made_network, network_for, of_rows
from leakscope.networks import MLP, LeNet5
from leakscope.networks.sparse import save_sparse
from leakscope.records import unpacking

TEXT = "mlp:4,5,3"
X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def net() -> nn.Module:
    torch.manual_seed(3)
    return made_network(TEXT).eval()


def save_old(state: Any, path: Path) -> None:
    """As torch did before its version 1.6."""
    torch.save(state, path, _use_new_zipfile_serialization=False)


def save_checkpoint(state: Any, path: Path) -> None:
    torch.save({"epoch": 3, "state_dict": state, "optimizer": {"lr": 0.1}}, path)


SAVERS: dict[str, Callable[[Any, Path], Any]] = {
    "safetensors": save_file,
    "torch": torch.save,
    "old torch": save_old,
    "checkpoint": save_checkpoint,
    "compact": save_sparse,
}


class Payload:
    """What a hostile file holds: unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", SAVERS)
@pytest.mark.parametrize("trust", [False, True])
def test_weights_come_back_into_their_network(tmp_path: Path, how: str, trust: bool) -> None:
    module, path = net(), tmp_path / "weights.bin"
    SAVERS[how](module.state_dict(), path)
    assert isinstance(open_model(path), Weights)
    expected = as_model(module).predict_proba(X)
    for network in (TEXT, lambda: made_network(TEXT), made_network(TEXT)):
        loaded = load_model(path, network=network, trust_pickle=trust)
        np.testing.assert_array_equal(as_model(loaded).predict_proba(X), expected)
        assert not loaded.training


@pytest.mark.parametrize("how", SAVERS)
def test_weights_alone_are_no_network(tmp_path: Path, how: str) -> None:
    path = tmp_path / "weights.pt"
    SAVERS[how](net().state_dict(), path)
    with pytest.raises(InputError, match=r"holds the weights of a network and not .* --network"):
        load_model(path)


@pytest.mark.parametrize(("save", "name"), [(torch.save, "new"), (save_old, "old")])
def test_a_whole_module_loads_if_trusted_and_only_then(
    tmp_path: Path, save: Any, name: str
) -> None:
    path = tmp_path / "model.pt"
    save(net(), path)
    with pytest.raises(
        UntrustedFileError,
        match=r"holds more than weights \(it asks for leakscope\.networks\.mlp\.MLP\), and loading "
        r"that can run any code; save module\.state_dict\(\) in its place, or pass --trust-pickle",
    ):
        load_model(path)
    loaded = load_model(path, trust_pickle=True)
    np.testing.assert_array_equal(
        as_model(loaded).predict_proba(X), as_model(net()).predict_proba(X)
    )


@pytest.mark.parametrize("save", [torch.save, save_old])
def test_a_hostile_file_is_not_run_when_it_is_refused(tmp_path: Path, save: Any) -> None:
    path, touched = tmp_path / "weights.pt", tmp_path / "touched"
    save({"layers.linear1.weight": Payload(touched)}, path)
    with pytest.raises(UntrustedFileError, match=r"it asks for \w+\.mkdir"):
        load_model(path, network=TEXT)
    assert not touched.exists()
    with pytest.raises(InputError, match="no tensors by name"):  # trusted, it does what it says
        load_model(path, network=TEXT, trust_pickle=True)
    assert touched.exists()


def changed(**changes: Any) -> dict[str, torch.Tensor]:
    state = {**net().state_dict()} | {
        name.replace("__", "."): tensor for name, tensor in changes.items()
    }
    return {name: tensor for name, tensor in state.items() if tensor is not None}


OTHERS = {
    "missing": (
        changed(layers__linear2__bias=None),
        "it has no tensor 'layers.linear2.bias', and the network has",
    ),
    "unknown": (
        changed(extra=torch.zeros(2)),
        "its tensor 'extra' is none of the network's",
    ),
    "shape": (
        changed(layers__linear1__weight=torch.zeros(5, 9)),
        "its tensor 'layers.linear1.weight' has the shape (5, 9) where the network's has (5, 4)",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.parametrize("how", ["safetensors", "torch"])
def test_weights_of_another_network_are_refused_by_the_key(
    tmp_path: Path, case: str, how: str
) -> None:
    state, why = OTHERS[case]
    path = tmp_path / "w.pt"
    SAVERS[how](state, path)
    with pytest.raises(InputError) as caught:
        load_model(path, network=TEXT)
    assert str(caught.value) == (
        f"The weights in {str(path)!r} are of another network: {why}; name the network that they "
        "were saved from"
    )


def test_a_compact_file_of_another_network_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    save_sparse({"layers.linear1.weight": torch.zeros(10**6)}, tmp_path / "w")
    with pytest.raises(InputError, match=r"is of another network, because its tensor 'layers\."):
        load_model(tmp_path / "w", network=TEXT)


def test_shared_weights_need_one_name_and_batches_none(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.second(self.first(x)))  # type: ignore[no-any-return]

    module = Tied().eval()
    save_model(module, str(tmp_path / "tied.safetensors"))
    loaded = load_model(tmp_path / "tied.safetensors", network=Tied)
    inputs = torch.from_numpy(X)
    assert torch.equal(loaded(inputs), module(inputs))
    state = {**module.state_dict()}
    del state["norm.num_batches_tracked"]
    torch.save(state, tmp_path / "old.pt")
    assert torch.equal(load_model(tmp_path / "old.pt", network=Tied)(inputs), module(inputs))


def test_double_weights_are_not_rounded(tmp_path: Path) -> None:
    module = net().double()
    with torch.no_grad():
        for part in module.parameters():
            part.add_(1e-12)
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    loaded = load_model(tmp_path / "w.safetensors", network=TEXT)
    for name, tensor in module.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)


def torch_bytes(thing: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


def damaged() -> bytes:
    """A file of torch's whose pickle is overwritten with zeros, its checksum made to fit."""
    buffer = io.BytesIO()
    whole = io.BytesIO(torch_bytes(net().state_dict()))
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(name, bytes(40) if name.endswith("data.pkl") else old.read(name))
    return buffer.getvalue()


def safetensors_bytes(header: bytes, body: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + body


BROKEN = {
    "a number": (torch_bytes(3), "holds a int and no tensors by name; save module.state_dict()"),
    "nothing": (torch_bytes({}), "holds a dict and no tensors by name"),
    "numbers for names": (torch_bytes({1: torch.zeros(2)}), "no tensors by name"),
    "numbers for tensors": (torch_bytes({"a": 1}), "no tensors by name"),
    "zeros for a pickle": (damaged(), "is damaged; save or copy it again"),
    "cut short": (torch_bytes(net().state_dict())[:-30], "is cut short; save or copy it again"),
    "a long header": (b"\xff" * 8 + b"{", "could not be read"),
    "no tensors": (safetensors_bytes(b'{"a": 1}'), "could not be read"),
    "more than there is": (
        safetensors_bytes(b'{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}'),
        "could not be read",
    ),
    "a deep header": (safetensors_bytes(b'{"a":' * 20_000), "could not be read"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_sentence(tmp_path: Path, case: str) -> None:
    content, sentence = BROKEN[case]
    path = tmp_path / "w.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(sentence)) as caught:
        load_model(path, network=TEXT)
    assert "\n" not in str(caught.value)
    assert repr(str(path)) in str(caught.value)


def test_a_file_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "w.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w/data.pkl", pickle.dumps({}))
        archive.writestr("w/version", "3")
        archive.writestr("w/data/0", bytes(2**22))
    monkeypatch.setattr(unpacking, "LARGE", 2**21)
    with pytest.raises(UntrustedFileError, match="more than 100 times its size"):
        load_model(tmp_path / "w.pt", network=TEXT)


def test_what_is_packed_otherwise_is_taken_for_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_bytes(gzip.compress(torch_bytes(net().state_dict())))
    with pytest.raises(UntrustedFileError, match="is not a skops file"):
        load_model(tmp_path / "w.pt", network=TEXT)


@pytest.mark.parametrize("package", ["torch", "safetensors.torch"])
def test_without_the_extra_the_way_to_install_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    save = torch.save if package == "torch" else save_file
    save(net().state_dict(), tmp_path / "w")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'leakscope\[torch\]'"):
        load_model(tmp_path / "w", network=TEXT)


def test_a_text_names_a_network_and_its_sizes() -> None:
    plain = made_network("mlp:104,50,50,2")
    assert isinstance(plain, MLP)
    assert (plain.widths, plain.activation) == ((104, 50, 50, 2), "tanh")
    relu = made_network("mlp:4,2,relu")
    assert isinstance(relu, MLP)
    assert (relu.widths, relu.activation) == ((4, 2), "relu")
    assert isinstance(made_network("lenet5:1,28,28,10"), LeNet5)
    assert made_network("shokri-small:7,2")(torch.zeros(1, 7)).shape == (1, 2)


@pytest.mark.parametrize(
    "text", ["mlp", "mlp:", "mlp:4", "mlp:4,x,2", "mlp:relu", "lenet5:1,28,28,-1", "mlp:4,,2"]
)
def test_a_text_without_sizes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"The network {text!r} has no sizes after")):
        made_network(text)


def test_a_network_nobody_knows_and_what_is_none() -> None:
    with pytest.raises(UnknownNameError, match="no network named 'lenet'; did you mean 'lenet5'"):
        made_network("lenet:1,28,28,10")
    with pytest.raises(InputError, match=r"network= is a int; give a torch module"):
        made_network(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"network= is a dict; give a torch module"):
        made_network(dict)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "features", "image"),
    [
        ("mlp", 104, None),
        ("mlp", 784, None),  # it takes rows, though they could be images
        ("mlp:784,5,10", 784, None),
        ("lenet5", 784, (1, 28, 28)),
        ("lenet5", 3072, (3, 32, 32)),
        ("lenet5:1,28,28,10", 5, (1, 28, 28)),
    ],
)
def test_a_network_gets_the_sizes_of_the_records(
    text: str, features: int, image: tuple[int, ...] | None
) -> None:
    made, shape = network_for(text, features, 10)
    assert shape == image
    if image is not None:
        features = int(np.prod(image))
        made = of_rows(made, image)
    assert made(torch.zeros(2, features)).shape == (2, 10)


def test_rows_that_are_no_image_are_refused() -> None:
    with pytest.raises(InputError, match=r"'lenet5' takes images, where a record has the shape"):
        network_for("lenet5", 104, 10)
