"""Compact files of pruned networks: what is zero is not written down.

A file begins with eight bytes that say what it is and in which version, and the SHA-256 of all that
follows: the length of a header (four bytes), the header (JSON: of each tensor its name, shape,
type, encoding, how many of its numbers are not zero, and how many bytes it takes), and the tensors
one after the other. All numbers are little-endian. A tensor is written in whichever of three ways
is shortest:

- dense: all its numbers;
- bitmap: a bit for each number, 1 where it is not zero, and then those that are not;
- gaps: a byte for the zeros before each number that is not zero, and after the last one; 255 means
  255 zeros and that the gap goes on (the relative index of Han et al. 2016, section 2). Then those
  numbers.

Zero is what has no bit set, so that −0.0 and NaN come back as they were. A file is data from a
stranger: nothing in it is run, and nothing is allocated before it is known that the file is long
enough for it, which is at least a byte for every 255 numbers.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.tracing import evaluating

Bytes = NDArray[np.uint8]

MAGIC = b"LSPARSE\x01"  # the last byte is the version
CHECKSUM = 32
LENGTH = 4
ESCAPE = 255

# A tensor has at most so many dimensions, each below 2³¹, so that no product of torch's overflows.
DIMENSIONS = 8

# A layer is run by its sparse weights where that takes less than this part of the time, the best of
# so many runs.
WORTHWHILE = 0.9
REPEATS = 20

DTYPES = {
    name: getattr(torch, name)
    for name in (
        *("float16", "bfloat16", "float32", "float64"),
        *("uint8", "int8", "int16", "int32", "int64", "bool"),
    )
}


@dataclass(frozen=True)
class Entry:
    """What the header says of one tensor; count: of its numbers that are not zero."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    encoding: str
    count: int
    length: int

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """How many bytes one of them has."""
        return int(DTYPES[self.dtype].itemsize)

    @property
    def index(self) -> int:
        """How many bytes say where the numbers are; negative where the length cannot be right."""
        return self.length - self.count * self.width


def packed(state: Mapping[str, Tensor]) -> bytes:
    """Tensors by name, such as a module's ``state_dict()``, as the bytes of a compact file."""
    entries, parts = [], []
    for name, tensor in state.items():
        entry, part = _encoded(name, tensor)
        entries.append(entry)
        parts.append(part)
    header = json.dumps([astuple(one) for one in entries], separators=(",", ":")).encode()
    body = b"".join([len(header).to_bytes(LENGTH, "little"), header, *parts])
    return MAGIC + hashlib.sha256(body).digest() + body


def unpacked(
    data: bytes, like: Mapping[str, Tensor] | None = None, name: str = "the data"
) -> dict[str, Tensor]:
    """The tensors of a compact file's bytes.

    like: those of the network that is to take them, where it is known; others are refused before
    they are made. name: what to call the bytes where they are refused.
    """
    try:
        return dict(_tensors(data, like))
    except _UnreadableError as error:
        raise InputError(
            f"No network can be read from {name}: {error}; save or copy it again"
        ) from error


def save_sparse(state: Mapping[str, Tensor], path: str | Path) -> int:
    """Write tensors by name to a compact file, in one go or not at all; how many bytes it has."""
    path, data = Path(path), packed(state)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return len(data)


def load_sparse(path: str | Path, like: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """The tensors in a compact file, exactly as they were, for ``module.load_state_dict``.

    like: the ``state_dict()`` of the network that is to take them; others are refused.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; give the path of a compact network file")
    return unpacked(path.read_bytes(), like, f"the file {str(path)!r}")


@dataclass(frozen=True)
class LayerTime:
    """Seconds that a linear layer takes for its inputs, as it is and by its sparse weights."""

    path: str
    plain: float
    sparse: float


class SparseLinear(nn.Linear):
    """A linear layer that multiplies by the weights that are not zero, stored by rows (CSR).

    Its parameters are those of a plain one. With gradients it works as that does.
    """

    _stored: tuple[tuple[Any, ...], Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """What a plain layer gives but for rounding."""
        if torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        outputs = (self._rows() @ x.reshape(-1, x.shape[-1]).T).T
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs.reshape(*x.shape[:-1], self.out_features)

    def _rows(self) -> Tensor:
        """The weights by rows, made anew whenever they have changed."""
        weight = self.weight.detach()
        state = (weight.data_ptr(), self.weight._version, weight.dtype)
        if self._stored is None or self._stored[0] != state:
            with warnings.catch_warnings():  # torch calls them beta, once in each process
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
                self._stored = state, weight.to_sparse_csr()
        return self._stored[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_stored"}


def layer_times(module: nn.Module, X: Tensor) -> tuple[LayerTime, ...]:
    """How long each linear layer takes for what it is given when the module is asked about X.

    Both ways are timed in turn, and the shortest of several times counts: what else runs on a
    machine only adds to it.
    """
    given: dict[str, Tensor] = {}

    def note(path: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def before(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            given[path] = inputs[0]

        return before

    linear = {path: one for path, one in module.named_modules() if type(one) is nn.Linear}
    handles = [one.register_forward_pre_hook(note(path)) for path, one in linear.items()]
    try:
        with evaluating(module), torch.no_grad():
            module(X)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(LayerTime(path, *_seconds(linear[path], x)) for path, x in given.items())


def faster_sparse(
    module: nn.Module, X: Tensor, times: Sequence[LayerTime] | None = None
) -> nn.Module:
    """A copy of a module whose linear layers skip zeros where that was measured to be faster.

    X: records such as it will be asked about, as many as at once. times: measured before.
    """
    measured = layer_times(module, X) if times is None else times
    faster = copy.deepcopy(module)
    for one in measured:
        if one.sparse < WORTHWHILE * one.plain:
            faster.get_submodule(one.path).__class__ = SparseLinear
    return faster


def stripped(module: nn.Module) -> nn.Module:
    """A copy of a module of plain linear layers alone, with the same parameters."""
    plain = copy.deepcopy(module)
    for layer in plain.modules():
        if isinstance(layer, SparseLinear):
            object.__setattr__(layer, "__class__", nn.Linear)
    return plain


@torch.no_grad()
def _seconds(layer: nn.Linear, x: Tensor) -> tuple[float, float]:
    """The time of one layer for x, plain and sparse."""
    sparse = copy.deepcopy(layer)
    sparse.__class__ = SparseLinear
    both, best = (layer, sparse), [math.inf, math.inf]
    for _ in range(REPEATS):
        for place, one in enumerate(both):
            start = time.perf_counter()
            one(x)
            best[place] = min(best[place], time.perf_counter() - start)
    return best[0], best[1]


class _UnreadableError(Exception):
    """What is wrong with a file, for a sentence."""


def _encoded(name: str, tensor: Tensor) -> tuple[Entry, bytes]:
    """A tensor in the shortest of the three ways."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES or tensor.layout != torch.strided or tensor.ndim > DIMENSIONS:
        raise InputError(
            f"The tensor {name!r} is a {tensor.ndim}-dimensional one of {dtype} "
            f"({tensor.layout}), which a compact file cannot hold; convert it to float32"
        )
    rows = _rows(tensor)
    there: NDArray[np.bool_] = np.any(rows, axis=1)
    values = rows[there]
    ways = {
        "dense": rows.tobytes(),
        "bitmap": np.packbits(there).tobytes() + values.tobytes(),
        "gaps": _gaps(there).tobytes() + values.tobytes(),
    }
    encoding, data = min(ways.items(), key=lambda way: len(way[1]))
    count = len(rows) if encoding == "dense" else len(values)
    return Entry(name, tuple(tensor.shape), dtype, encoding, count, len(data)), data


def _rows(tensor: Tensor) -> Bytes:
    """The bytes of each number, (numbers, width)."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    rows: Bytes = flat.view(torch.uint8).numpy().reshape(len(flat), tensor.element_size())
    return rows


def _gaps(there: NDArray[np.bool_]) -> Bytes:
    """How many zeros are before each number, and after the last, in bytes."""
    places = np.flatnonzero(there)
    gaps = np.diff(places, prepend=-1, append=len(there)) - 1
    escapes = gaps // ESCAPE
    stream = np.full(len(gaps) + escapes.sum(), ESCAPE, dtype=np.uint8)
    stream[np.cumsum(escapes + 1) - 1] = gaps % ESCAPE
    return stream


def _tensors(data: bytes, like: Mapping[str, Tensor] | None) -> Iterator[tuple[str, Tensor]]:
    """The tensors one after the other, once all that is said of them is known to be possible."""
    if len(data) < len(MAGIC) + CHECKSUM + LENGTH:
        raise _UnreadableError(f"it is cut short, with {len(data)} bytes")
    if not data.startswith(MAGIC):
        raise _UnreadableError(f"it does not begin with {MAGIC!r}, as version 1 of such files does")
    body = memoryview(data)[len(MAGIC) + CHECKSUM :]
    if hashlib.sha256(body).digest() != data[len(MAGIC) : len(MAGIC) + CHECKSUM]:
        raise _UnreadableError("it is cut short or was altered (its checksum is another)")
    end = LENGTH + int.from_bytes(body[:LENGTH], "little")
    entries = _entries(bytes(body[LENGTH:end]))
    if end + sum(one.length for one in entries) != len(body):
        raise _UnreadableError(f"its header tells of another length than its {len(data)} bytes")
    if like is not None:
        _refuse_others(entries, like)
    for entry in entries:
        part = np.frombuffer(body[end : end + entry.length], dtype=np.uint8)
        yield entry.name, _decoded(entry, part)
        end += entry.length


def _entries(header: bytes) -> list[Entry]:
    """What the header says, if it can be so."""
    try:
        told = json.loads(header)
        entries = [Entry(name, tuple(shape), *rest) for name, shape, *rest in told]
    except (ValueError, TypeError, RecursionError):
        raise _UnreadableError("its header cannot be read") from None
    for entry in entries:
        if not _is_possible(entry):
            raise _UnreadableError(f"its header tells of an impossible tensor {entry.name!r:.60}")
    if len({entry.name for entry in entries}) < len(entries):
        raise _UnreadableError("its header names a tensor twice")
    return entries


def _is_possible(entry: Entry) -> bool:
    """Whether a tensor of these sizes fits into so many bytes."""
    sizes = (*entry.shape, entry.count, entry.length)
    if not (
        all(type(one) is str for one in (entry.name, entry.dtype, entry.encoding))
        and all(type(one) is int and one >= 0 for one in sizes)
        and entry.dtype in DTYPES
        and len(entry.shape) <= DIMENSIONS
        and max(entry.shape, default=0) < 2**31
        and entry.count <= entry.numbers
    ):
        return False
    if entry.encoding == "dense":
        return entry.count == entry.numbers and entry.index == 0
    if entry.encoding == "bitmap":
        return entry.index == -(-entry.numbers // 8)
    return entry.encoding == "gaps" and entry.index >= 0  # which add up to the size, or not


def _refuse_others(entries: list[Entry], like: Mapping[str, Tensor]) -> None:
    """Refuse tensors of another network."""
    told = {one.name: f"{list(one.shape)} of {one.dtype}" for one in entries}
    known = {
        name: f"{list(one.shape)} of {str(one.dtype).removeprefix('torch.')}"
        for name, one in like.items()
    }
    for name in [*known, *told]:
        here, there = told.get(name, "missing"), known.get(name, "none")
        if here != there:
            raise _UnreadableError(
                f"it is of another network, because its tensor {name!r:.60} is {here:.60} where "
                f"the network has {there}"
            )


def _decoded(entry: Entry, part: Bytes) -> Tensor:
    """A tensor from its bytes; what takes memory is as long as the file or fits its header."""
    if entry.encoding == "dense":
        rows = part.reshape(entry.numbers, entry.width).copy()
    else:
        index, values = part[: entry.index], part[entry.index :]
        places = _set_bits(entry, index) if entry.encoding == "bitmap" else _ends(entry, index)
        rows = np.zeros((entry.numbers, entry.width), dtype=np.uint8)
        rows[places] = values.reshape(entry.count, entry.width)
    dtype = DTYPES[entry.dtype]
    if dtype is torch.bool and (rows > 1).any():
        raise _UnreadableError(f"the tensor {entry.name!r:.60} holds more than true and false")
    flat: Any = torch.from_numpy(rows.reshape(-1))
    tensor: Tensor = flat.view(dtype).reshape(entry.shape)
    return tensor


def _set_bits(entry: Entry, index: Bytes) -> NDArray[np.intp]:
    """Where a bitmap has its ones, (count,)."""
    places = np.flatnonzero(np.unpackbits(index))
    if len(places) != entry.count or (len(places) and places[-1] >= entry.numbers):
        raise _UnreadableError(f"the bitmap of the tensor {entry.name!r:.60} is not of its size")
    return places


def _ends(entry: Entry, index: Bytes) -> NDArray[np.intp]:
    """Where the gaps end, (count,)."""
    (last,) = np.nonzero(index != ESCAPE)
    places = np.cumsum(index, dtype=np.intp)[last] + np.arange(len(last))
    if len(last) != entry.count + 1 or last[-1] != len(index) - 1 or places[-1] != entry.numbers:
        raise _UnreadableError(f"the gaps of the tensor {entry.name!r:.60} are not of its size")
    return places[:-1]
