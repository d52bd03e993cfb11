from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks import MLP, LeNet5
from leakscope.networks import sparse as module_of_files
from leakscope.networks.pruning import Masks, largest, layer_budgets, prunable
from leakscope.networks.sparse import (
    CHECKSUM,
    DTYPES,
    LENGTH,
    MAGIC,
    LayerTime,
    SparseLinear,
    faster_sparse,
    layer_times,
    load_sparse,
    packed,
    save_sparse,
    stripped,
    unpacked,
)

START = len(MAGIC) + CHECKSUM


def pruned_lenet(ratio: float = 16) -> nn.Module:
    module = LeNet5()
    weights = prunable(module)
    budgets = layer_budgets({path: one.numel() for path, one in weights.items()}, ratio)
    Masks.of_largest(weights, budgets).hold(module)
    return module


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are alike to the last bit, also where they are no numbers."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.contiguous().numpy().tobytes() == other.contiguous().numpy().tobytes()


def header_of(data: bytes) -> list[Any]:
    length = int.from_bytes(data[START : START + LENGTH], "little")
    return list(json.loads(data[START + LENGTH : START + LENGTH + length]))


def forged(header: Any, payload: bytes = b"") -> bytes:
    """A file of any header, with a checksum that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = len(text).to_bytes(LENGTH, "little") + text + payload
    return MAGIC + hashlib.sha256(body).digest() + body


# --------------------------------------------------------------------------------------- files


def test_a_pruned_lenet_is_eleven_times_smaller(tmp_path: Path) -> None:
    module = pruned_lenet()
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    dense = len(file.getvalue())
    path = tmp_path / "lenet.sparse"
    written = save_sparse(module.state_dict(), path)
    assert written == path.stat().st_size
    assert dense / written >= 11
    assert [one.name for one in tmp_path.iterdir()] == ["lenet.sparse"]
    loaded = load_sparse(path, like=LeNet5().state_dict())
    assert list(loaded) == list(module.state_dict())
    assert all(same(loaded[name], one) for name, one in module.state_dict().items())
    other = LeNet5()
    other.load_state_dict(loaded)
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(other(x), module(x))


def test_each_tensor_is_written_in_the_shortest_way() -> None:
    random = torch.Generator().manual_seed(0)
    values = torch.rand(4000, generator=random) + 1
    share = torch.rand(4000, generator=random)
    state = {
        "all": values,
        "half": values * (share < 0.5),
        "few": values * (share < 1 / 16),
        "none": torch.zeros(4000),
        "numbers": torch.tensor(7),
    }
    assert [(name, way) for name, _, _, way, *_ in header_of(packed(state))] == [
        ("all", "dense"),
        ("half", "bitmap"),
        ("few", "gaps"),
        ("none", "gaps"),
        ("numbers", "dense"),
    ]
    few = header_of(packed(state))[2]
    count = int((share < 1 / 16).sum())
    assert few == ["few", [4000], "float32", "gaps", count, 4 * count + count + 1]


def test_the_bytes_of_a_known_tensor() -> None:
    """300 zeros are 255 and 45; two numbers beside each other have a gap of 0."""
    tensor = torch.zeros(1000, dtype=torch.int8)
    tensor[300], tensor[301] = 5, -1
    data = packed({"a": tensor})
    assert header_of(data) == [["a", [1000], "int8", "gaps", 2, 8]]
    # 698 zeros follow: 255 + 255 + 188.
    assert list(data[-8:]) == [255, 45, 0, 255, 255, 188, 5, 255]
    assert same(unpacked(data)["a"], tensor)


@pytest.mark.parametrize("zeros", [0, 1, 254, 255, 256, 509, 510, 511])
def test_gaps_of_any_length(zeros: int) -> None:
    tensor = torch.zeros(3 * zeros + 2000)
    tensor[zeros], tensor[2 * zeros + 1] = 1.5, -0.0
    assert same(unpacked(packed({"": tensor}))[""], tensor)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_type_comes_back(dtype: torch.dtype) -> None:
    tensor = torch.zeros(40, 3).bernoulli_(0.2, generator=torch.Generator().manual_seed(1))
    found = unpacked(packed({"a": tensor.to(dtype), "b": tensor.to(dtype)[:0], "c": tensor.T}))
    assert found["a"].dtype == dtype
    assert torch.equal(found["a"], tensor.to(dtype))
    assert found["b"].shape == (0, 3)
    assert torch.equal(found["c"], tensor.T)


@given(
    st.lists(st.one_of(st.just(0.0), st.just(0.0), st.floats(width=32)), min_size=0, max_size=60),
    st.integers(0, 600),
)
@settings(max_examples=100, deadline=None)
def test_any_numbers_come_back_to_the_last_bit(values: list[float], zeros: int) -> None:
    tensor = torch.tensor([*values, *[0.0] * zeros, 1.0], dtype=torch.float32)
    found = unpacked(packed({"a": tensor, "b": tensor[:-1].reshape(1, -1, 1)}))
    assert same(found["a"], tensor)
    assert same(found["b"], tensor[:-1].reshape(1, -1, 1))


def test_a_whole_network_with_its_counters() -> None:
    state = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).state_dict()
    found = unpacked(packed(state))
    assert all(same(found[name], one) for name, one in state.items())
    assert unpacked(packed({})) == {}


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(2, dtype=torch.complex64), torch.eye(2).to_sparse(), torch.zeros([1] * 9)],
    ids=["complex", "sparse", "nine dimensions"],
)
def test_what_a_file_cannot_hold_is_refused(tensor: Tensor) -> None:
    with pytest.raises(InputError, match=r"The tensor 'w' is .* which a compact file cannot hold"):
        packed({"w": tensor})


def test_a_truncated_or_altered_file_is_refused(tmp_path: Path) -> None:
    data = packed(MLP([3, 4, 2]).state_dict())
    assert unpacked(data)
    for stop in range(len(data)):
        with pytest.raises(InputError, match="cut short"):
            unpacked(data[:stop])
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] ^= 1
        with pytest.raises(InputError, match=r"was altered|does not begin with"):
            unpacked(bytes(altered))
    path = tmp_path / "cut"
    path.write_bytes(data[:-1])
    with pytest.raises(InputError, match=r"No network can be read from the file '.*cut': it is cu"):
        load_sparse(path)
    with pytest.raises(InputError, match=r"There is no file '.*none'; give the path"):
        load_sparse(tmp_path / "none")


def test_another_version_is_refused() -> None:
    data = packed({"a": torch.zeros(3)})
    with pytest.raises(InputError, match="as version 1 of such files does"):
        unpacked(MAGIC[:-1] + b"\x02" + data[len(MAGIC) :])


HUGE = 2**30
FORGED: dict[str, tuple[Any, bytes]] = {
    "no JSON": (b"{", b""),
    "no list": (7, b""),
    "deep": (b"[" * 100_000, b""),
    "too few things": ([["a", [1], "float32"]], b""),
    "too many things": ([["a", [1], "float32", "dense", 1, 4, 5]], b""),
    "a number for a name": ([[7, [1], "float32", "dense", 1, 4]], b"1234"),
    "a text for a shape": ([["a", "1", "float32", "dense", 1, 4]], b"1234"),
    "true for one": ([["a", [True], "float32", "dense", 1, 4]], b"1234"),
    "a fraction": ([["a", [1.0], "float32", "dense", 1, 4]], b"1234"),
    "a list for a type": ([["a", [1], ["float32"], "dense", 1, 4]], b"1234"),
    "another type": ([["a", [1], "float8", "dense", 1, 1]], b"1"),
    "another encoding": ([["a", [1], "float32", "zip", 1, 4]], b"1234"),
    "below nothing": ([["a", [-1], "float32", "dense", 0, 0]], b""),
    "below nothing twice": ([["a", [-1, -1], "float32", "dense", 1, 4]], b"1234"),
    "nine dimensions": ([["a", [1] * 9, "float32", "dense", 1, 4]], b"1234"),
    "an endless side": ([["a", [0, 2**62], "float32", "dense", 0, 0]], b""),
    "more than there is": ([["a", [HUGE], "float32", "dense", HUGE, 4 * HUGE]], b"1234"),
    "dense and short": ([["a", [HUGE], "float32", "dense", HUGE, 4]], b"1234"),
    "a short bitmap": ([["a", [HUGE], "float32", "bitmap", 0, 4]], b"1234"),
    "short gaps": ([["a", [HUGE], "float32", "gaps", 0, 4]], b"1234"),
    "too many numbers": ([["a", [2], "float32", "gaps", 3, 16]], b"\0" * 16),
    "more numbers than bytes": ([["a", [9], "float32", "gaps", 4, 15]], b"\0" * 15),
    "bits past the end": ([["a", [3], "int8", "bitmap", 1, 2]], b"\x01\x01"),
    "more bits than numbers": ([["a", [8], "int8", "bitmap", 1, 2]], b"\xc0\x01"),
    "gaps past the end": ([["a", [3], "int8", "gaps", 1, 3]], b"\x05\x00\x01"),
    "gaps before the end": ([["a", [9], "int8", "gaps", 1, 3]], b"\x05\x00\x01"),
    "gaps without an end": ([["a", [255], "int8", "gaps", 0, 1]], b"\xff"),
    "a gap that goes on": ([["a", [2], "int8", "gaps", 1, 4]], b"\x01\x00\xff\x01"),
    "the same name": ([["a", [1], "int8", "dense", 1, 1]] * 2, b"12"),
    "more bytes": ([["a", [1], "int8", "dense", 1, 1]], b"12"),
    "fewer bytes": ([["a", [2], "int8", "dense", 2, 2]], b"1"),
    "neither true nor false": ([["a", [1], "bool", "dense", 1, 1]], b"2"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_file_that_was_made_to_harm_is_refused_without_memory(name: str) -> None:
    with pytest.raises(InputError, match="No network can be read from the data: "):
        unpacked(forged(*FORGED[name]))


@given(st.binary(max_size=40), st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_the_bytes_are_only_a_sentence_comes_of_it(
    payload: bytes, data: st.DataObject
) -> None:
    sizes = st.integers(-1, 300)
    entry = st.tuples(
        st.just("a"),
        st.lists(sizes, max_size=3),
        st.sampled_from(["int8", "float32", "bool"]),
        st.sampled_from(["dense", "bitmap", "gaps"]),
        st.integers(0, 40),
        st.just(len(payload)),
    )
    file = forged([data.draw(entry)], payload)
    try:
        (tensor,) = unpacked(file).values()
    except InputError:
        return
    assert tensor.numel() <= 255 * len(payload)


def test_a_header_longer_than_the_file_is_refused() -> None:
    body = (2**32 - 1).to_bytes(LENGTH, "little") + b"[]"
    data = MAGIC + hashlib.sha256(body).digest() + body
    with pytest.raises(InputError, match="another length than its 46 bytes"):
        unpacked(data)


@pytest.mark.parametrize(
    ("like", "said"),
    [
        ({"a": torch.zeros(3)}, r"its tensor 'a' is \[2\] of float32 where the network has \[3\]"),
        ({"a": torch.zeros(2).double()}, r"is \[2\] of float32 where the network has \[2\] of flo"),
        ({"b": torch.zeros(2)}, r"'b' is missing where the network has \[2\] of float32"),
        ({}, r"'a' is \[2\] of float32 where the network has none"),
    ],
)
def test_another_network_is_refused(like: dict[str, Tensor], said: str) -> None:
    with pytest.raises(InputError, match=said):
        unpacked(packed({"a": torch.zeros(2)}), like)


def test_nothing_is_left_where_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    save_sparse({"a": torch.zeros(2)}, path)
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        save_sparse({"a": torch.ones(5)}, path)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == before


# ------------------------------------------------------------------------------ sparse layers


def large() -> nn.Module:
    module = MLP([30, 40, 20, 3])
    with torch.no_grad():
        for weight in prunable(module).values():
            weight.mul_(largest(weight, weight.numel() // 16))
    return module


def times(**seconds: tuple[float, float]) -> list[LayerTime]:
    return [LayerTime(f"layers.{name}", *pair) for name, pair in seconds.items()]


def kinds(module: nn.Module) -> list[str]:
    return [type(one).__name__ for one in module.modules() if isinstance(one, nn.Linear)]


def test_layers_are_sparse_where_that_is_faster() -> None:
    module, x = large(), torch.rand(7, 30)
    measured = times(linear1=(1.0, 0.5), linear2=(1.0, 0.95), linear3=(1.0, 2.0))
    fast = faster_sparse(module, x, measured)
    assert kinds(fast) == ["SparseLinear", "Linear", "Linear"]
    assert kinds(module) == ["Linear"] * 3
    with torch.no_grad():
        torch.testing.assert_close(fast(x), module(x))
        images = torch.rand(2, 3, 30)
        layers = fast.get_submodule("layers.linear1"), module.get_submodule("layers.linear1")
        torch.testing.assert_close(layers[0](images), layers[1](images))
        assert layers[0](images[:0]).shape == (0, 3, 40)
    plain = stripped(fast)
    assert kinds(plain) == ["Linear"] * 3
    assert torch.equal(plain(x), module(x))
    assert kinds(fast) == ["SparseLinear", "Linear", "Linear"]
    assert str(plain) == str(module)


def test_a_layer_without_a_bias_and_a_layer_alone() -> None:
    layer = nn.Linear(8, 5, bias=False)
    x = torch.rand(3, 8)
    fast = faster_sparse(layer, x, [LayerTime("", 2.0, 1.0)])
    assert isinstance(fast, SparseLinear)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), layer(x))
    assert type(stripped(fast)) is nn.Linear


def test_sparse_layers_follow_their_weights() -> None:
    module, x = large(), torch.rand(4, 30)
    fast = faster_sparse(module, x, times(linear1=(1, 0.1), linear2=(1, 0.1), linear3=(1, 0.1)))
    with torch.no_grad():
        fast(x)
        for one in (fast, module):
            one.get_parameter("layers.linear1.weight")[0, 0] = 3.0
        torch.testing.assert_close(fast(x), module(x))
        torch.testing.assert_close(fast.double()(x.double()), module.double()(x.double()))
    assert list(fast.state_dict()) == list(module.state_dict())


def test_with_gradients_they_are_plain() -> None:
    module, x = large(), torch.rand(4, 30, requires_grad=True)
    fast = faster_sparse(module, x.detach(), times(linear1=(1, 0.1), linear2=(1, 0.1)))
    assert torch.equal(fast(x), module(x))
    gradients = [torch.autograd.grad(one(x).sum(), [x])[0] for one in (fast, module)]
    assert torch.equal(*gradients)


def test_they_can_be_copied_and_sent() -> None:
    module, x = large(), torch.rand(4, 30)
    fast = faster_sparse(module, x, times(linear1=(1, 0.1)))
    with torch.no_grad():
        expected = fast(x)
        for again in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            assert torch.equal(again(x), expected)


def test_layers_are_measured_on_what_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = large().train(), torch.rand(5, 30)
    given: list[tuple[int, ...]] = []

    def seconds(layer: nn.Linear, inputs: Tensor) -> tuple[float, float]:
        given.append(tuple(inputs.shape))
        return 2.0, 1.0

    with monkeypatch.context() as patch:
        patch.setattr(module_of_files, "_seconds", seconds)
        assert kinds(faster_sparse(module, x)) == ["SparseLinear"] * 3
    assert given == [(5, 30), (5, 40), (5, 20)]
    assert module.training
    found = layer_times(module, x)
    assert [one.path for one in found] == ["layers.linear1", "layers.linear2", "layers.linear3"]
    assert all(one.plain > 0 and one.sparse > 0 for one in found)
    assert not any(layer._forward_pre_hooks for layer in module.modules())


def test_the_shortest_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.cumsum([0, 5, 1, 2, *[1, 9] * 100]).tolist())
    monkeypatch.setattr(module_of_files.time, "perf_counter", lambda: next(clock))
    (found,) = layer_times(nn.Linear(3, 2), torch.rand(1, 3))
    # The first runs take 5 and 2, all others 9.
    assert (found.plain, found.sparse) == (5, 2)
