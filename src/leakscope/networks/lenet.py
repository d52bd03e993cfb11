"""LeNet-5 (LeCun et al. 1998, section II-B), as it is built today.

The classic one has 61,470 weights (and 236 biases) for digits in 10 classes: the "60 K" of Wang et
al. 2020, Table 4. Every map of the second convolution sees all maps of the first, pooling takes the
largest value, and the output layer is linear.
"""

from __future__ import annotations

from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.blocks import Activation, activation_module
from leakscope.networks.catalog import Image, of_images

# Digits of 28 × 28 get a frame of 2 pixels, and are then of the original size.
FRAME = {28: 2, 32: 0}


class LeNet5(nn.Module):
    """Convolutions of 6 and 16 maps, layers of 120 and 84; images (n, channels, size, size).

    size: 28, as in MNIST (61,470 weights with one channel), or 32, as in CIFAR-10 (61,770 with
    three).
    """

    def __init__(
        self, classes: int = 10, channels: int = 1, size: int = 28, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        if size not in FRAME:
            raise InputError(
                f"LeNet-5 takes images of 28 or 32 pixels a side, got {size!r}; use the network "
                "'cnn4' for others"
            )
        self.features = nn.Sequential()
        self.features.add_module("conv1", nn.Conv2d(channels, 6, 5, padding=FRAME[size]))
        self.features.add_module(f"{activation}1", activation_module(activation))
        self.features.add_module("pool1", nn.MaxPool2d(2))
        self.features.add_module("conv2", nn.Conv2d(6, 16, 5))
        self.features.add_module(f"{activation}2", activation_module(activation))
        self.features.add_module("pool2", nn.MaxPool2d(2))
        self.classifier = nn.Sequential()
        self.classifier.add_module("linear1", nn.Linear(16 * 5 * 5, 120))
        self.classifier.add_module(f"{activation}3", activation_module(activation))
        self.classifier.add_module("linear2", nn.Linear(120, 84))
        self.classifier.add_module(f"{activation}4", activation_module(activation))
        self.classifier.add_module("linear3", nn.Linear(84, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.features(x).flatten(1))
        return logits


@of_images("lenet5")
def lenet5_of(image: Image, classes: int) -> LeNet5:
    """LeNet-5 for square images of 28 or 32 pixels a side."""
    channels, height, width = image
    if height != width:
        raise InputError(
            f"LeNet-5 takes square images, got {height} × {width}; crop or pad them to 28 × 28 or "
            "32 × 32"
        )
    return LeNet5(classes, channels, height)
