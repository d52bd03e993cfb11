"""Weights of torch networks from files: numbers by name, and nothing that is run.

A file of weights does not say what computes with them, so the network is made by somebody who
knows it, and the file fills it. Three kinds are read: safetensors, torch's own state dict (with
``weights_only``, which builds tensors and refuses everything else), and the compact files of
``networks.sparse``. torch is imported where it is needed, so that other models load without it.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from leakscope.errors import InputError, MissingExtraError, UntrustedFileError

if TYPE_CHECKING:
    from torch import Tensor, nn

# The network that weights belong to: a module, a function that makes one, or a text.
Network: TypeAlias = Union["nn.Module", Callable[[], "nn.Module"], str]

# Where training scripts put the weights in a checkpoint, beside the epoch and the optimizer.
WITHIN = ("state_dict", "model_state_dict", "model")

# Counted by batch normalization in training and never read again; old files do not have it.
IDLE = ".num_batches_tracked"

IMAGE = 3  # channels, height, width


@dataclass(frozen=True, eq=False)
class Weights:
    """Tensors by name, of a network that is not known yet.

    tensors: None for a compact file, which is unpacked once the network says how much it may hold.
    """

    path: Path
    tensors: Mapping[str, Tensor] | None = None

    def into(self, module: nn.Module) -> nn.Module:
        """The module with these weights; it must have exactly such tensors, by name and shape."""
        own = module.state_dict()
        tensors = self._read(own)
        self._refuse_other(tensors, own)
        if any(str(one.dtype) == "torch.float64" for one in tensors.values()):
            module = module.double()  # or the weights would be rounded
        module.load_state_dict(dict(tensors), strict=False)
        return module.eval()

    def unnamed(self) -> InputError:
        """What to say where nobody named the network."""
        return InputError(
            f"The model file {str(self.path)!r} holds the weights of a network and not the "
            "network; name it with --network mlp:104,50,50,2 (network=), or with --recipe "
            "module:attribute"
        )

    def _read(self, own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        if self.tensors is not None:
            return self.tensors
        from leakscope.networks.sparse import load_sparse

        return load_sparse(self.path, like=own)

    def _refuse_other(self, tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
        """Name the first tensor that is missing, unknown or of another shape."""
        # Weights that several layers share are one tensor, of which a file may hold one name.
        shared = {one.data_ptr() for name, one in own.items() if name in tensors}
        for name in own:
            idle = name.endswith(IDLE) or own[name].data_ptr() in shared
            if name not in tensors and not idle:
                raise self._other(f"it has no tensor {name!r}, and the network has")
        for name, tensor in tensors.items():
            if name not in own:
                raise self._other(f"its tensor {name!r:.80} is none of the network's")
            if tensor.shape != own[name].shape:
                raise self._other(
                    f"its tensor {name!r} has the shape {tuple(tensor.shape)} where the network's "
                    f"has {tuple(own[name].shape)}"
                )

    def _other(self, why: str) -> InputError:
        return InputError(
            f"The weights in {str(self.path)!r} are of another network: {why}; name the network "
            "that they were saved from"
        )


def read_safetensors(path: Path) -> Weights:
    """The tensors of a safetensors file, whose reader checks that its header tells of its bytes."""
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingExtraError("A safetensors file", "torch") from error
    return Weights(path, load_file(path))


def read_torch(path: Path, trust: bool) -> Weights | nn.Module:
    """The state dict in a file of torch.save; a whole module only where the file is trusted."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("A file of torch weights", "torch") from error
    try:
        found = torch.load(path, map_location="cpu", weights_only=not trust)
    except pickle.UnpicklingError as error:
        asked = re.search(r"GLOBAL ([\w.]+)", str(error))
        if asked is None:
            raise InputError(
                f"The model file {str(path)!r} is damaged; save or copy it again"
            ) from error
        raise UntrustedFileError(
            f"The model file {str(path)!r} holds more than weights (it asks for {asked[1]:.80}), "
            "and loading that can run any code; save module.state_dict() in its place, or pass "
            "--trust-pickle (trust_pickle=True) if you made it yourself"
        ) from error
    if isinstance(found, torch.nn.Module):
        return found
    return Weights(path, _state_dict(found, path))


def _state_dict(found: Any, path: Path) -> dict[str, Tensor]:
    """The weights themselves, or those in a checkpoint."""
    from torch import Tensor

    places = [found, *(found.get(name) for name in WITHIN)] if isinstance(found, dict) else []
    for one in places:
        if (
            isinstance(one, dict)
            and one
            and all(isinstance(name, str) for name in one)
            and all(isinstance(tensor, Tensor) for tensor in one.values())
        ):
            return dict(one)
    raise InputError(
        f"The model file {str(path)!r} holds a {type(found).__name__} and no tensors by name; save "
        "module.state_dict()"
    )


def made_network(network: Network) -> nn.Module:
    """A module as it is, what a function makes, or what a text such as "mlp:4,5,2" names.

    The numbers are what a record has (features, or channels, height and width) and then how many
    classes there are; of an mlp the widths of all its layers, and its activation if not tanh.
    """
    from torch.nn import Module

    if isinstance(network, str):
        name, sizes, activation = _told(network)
        if not sizes:
            raise _sizeless(network)
        return _sized(name, sizes, activation)
    made = network if isinstance(network, Module) or not callable(network) else network()
    if not isinstance(made, Module):
        raise InputError(
            f"network= is a {type(made).__name__}; give a torch module, a function that makes one, "
            "or a text such as 'mlp:104,50,50,2'"
        )
    return made


def network_for(text: str, features: int, classes: int) -> tuple[nn.Module, tuple[int, ...] | None]:
    """The network that a text names, of sizes that fit records of so many features and classes.

    Sizes in the text go first. Beside it the (channels, height, width) to which a row of features
    must be laid out for it; None where it takes rows.
    """
    from leakscope.networks import MLP, network

    name, sizes, activation = _told(text)
    if sizes:
        shape, made = sizes[:-1], _sized(name, sizes, activation)
    else:
        shape = _image(features) or (features,)
        made = network(name, shape, classes)
    return made, shape if len(shape) == IMAGE and not isinstance(made, MLP) else None


def of_rows(module: nn.Module, image: tuple[int, ...]) -> nn.Module:
    """A network of images that takes the rows of a table, each laid out as an image."""
    from torch.nn import Sequential, Unflatten

    return Sequential(Unflatten(1, image), module)


def _told(text: str) -> tuple[str, tuple[int, ...], Any]:
    """The name, the sizes (none where they are left out), and the activation of an mlp."""
    name, colon, told = text.partition(":")
    parts, activation = told.split(",") if colon else [], "tanh"
    if name == "mlp" and parts and parts[-1].isalpha():
        *parts, activation = parts
    if not all(part.isdecimal() for part in parts) or (colon and len(parts) < 2):
        raise _sizeless(text)
    return name, tuple(int(part) for part in parts), activation


def _sizeless(text: str) -> InputError:
    return InputError(
        f"The network {text!r} has no sizes after its name; give what a record has and the number "
        "of classes, such as mlp:104,50,50,2 or lenet5:1,28,28,10"
    )


def _sized(name: str, sizes: tuple[int, ...], activation: Any) -> nn.Module:
    from leakscope.networks import MLP, network

    if name == "mlp":
        return MLP(sizes, activation)
    return network(name, sizes[:-1], sizes[-1])


def _image(features: int) -> tuple[int, int, int] | None:
    """The square image of one or three colours that has so many numbers; None if there is none."""
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if channels * side * side == features:
            return channels, side, side
    return None
