"""Networks by name: each is entered above the function that builds it, as attacks are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import nn

from leakscope.errors import InputError, UnknownNameError
from leakscope.options import whole_number

# Channels, height and width of an image.
Image = tuple[int, int, int]
Builder = Callable[[tuple[int, ...], int], nn.Module]

_BUILDERS: dict[str, Builder] = {}


def network(name: str, inputs: int | Sequence[int], classes: int = 2) -> nn.Module:
    """A network by name, with fresh weights: ``network("resnet18", (3, 32, 32), 10)``.

    inputs: how many features a record has, or the (channels, height, width) of an image. With
    ``functools.partial(network, name)`` it is the factory of a recipe.
    """
    if name not in _BUILDERS:
        raise UnknownNameError("network", name, _BUILDERS)
    sizes = inputs if isinstance(inputs, Sequence) else (inputs,)
    shape = tuple(whole_number("inputs", size, low=1) for size in sizes)
    if not shape:
        raise InputError("The option inputs is empty; give the number of features of a record")
    return _BUILDERS[name](shape, whole_number("classes", classes, low=1))


def network_names() -> list[str]:
    """The names that ``network`` knows."""
    return sorted(_BUILDERS)


def of_vectors(*names: str) -> Callable[[Callable[[int, int], nn.Module]], Builder]:
    """Enter a network of (features, classes); the values of an image are features like others."""

    def enter(build: Callable[[int, int], nn.Module]) -> Builder:
        def built(shape: tuple[int, ...], classes: int) -> nn.Module:
            return build(math.prod(shape), classes)

        _BUILDERS.update(dict.fromkeys(names, built))
        return built

    return enter


def of_images(*names: str) -> Callable[[Callable[[Image, int], nn.Module]], Builder]:
    """Enter a network of ((channels, height, width), classes)."""

    def enter(build: Callable[[Image, int], nn.Module]) -> Builder:
        def built(shape: tuple[int, ...], classes: int) -> nn.Module:
            if len(shape) != 3:
                raise InputError(
                    f"The network {names[0]!r} takes images, where a record has the shape {shape}; "
                    "give inputs=(channels, height, width) and records of that shape"
                )
            channels, height, width = shape
            return build((channels, height, width), classes)

        _BUILDERS.update(dict.fromkeys(names, built))
        return built

    return enter
