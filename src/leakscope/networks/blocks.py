"""What several networks are built of: activations, sums of branches, starting weights."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.options import one_of

Activation = Literal["tanh", "relu"]
# Small images of 32 × 32 pixels, as in CIFAR-10, or large ones of 224 × 224, as in ImageNet.
Form = Literal["cifar", "imagenet"]

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}
FORMS = ("cifar", "imagenet")

# The side from which images are large. Both forms take any size that survives being halved five
# times; a stem that divides the side by four at once leaves nothing of a small image.
LARGE = 112
SMALLEST = 32


def activation_module(name: str) -> nn.Module:
    """A new module of this activation."""
    return ACTIVATIONS[one_of("activation", name, ACTIVATIONS)]()


def form_of(network: str, height: int, width: int) -> Form:
    """The form of a network that suits images of this size."""
    if min(height, width) < SMALLEST:
        raise InputError(
            f"The network {network!r} takes images of at least {SMALLEST} × {SMALLEST} pixels, got "
            f"{height} × {width}; use 'lenet5' or 'cnn4', or pad the images"
        )
    return "imagenet" if min(height, width) >= LARGE else "cifar"


class Sum(nn.Module):
    """The sum of two branches: a module, so that explanations can share relevance between them."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Left + right, of one shape."""
        return left + right


def draw_normal(module: nn.Module, deviation: float = 0.01) -> None:
    """Weights from N(0, deviation²) and biases of 0: how Shokri, Strobel & Zick 2021 begin."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.normal_(layer.weight, std=deviation)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def draw_for_relu(module: nn.Module) -> None:
    """Convolutions from N(0, 2 / fan out) and biases of 0 (He et al. 2015, section 2.2)."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
