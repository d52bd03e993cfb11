"""The four-layer CNN against which Wang et al. 2020, Table 2, compare differential privacy.

They take it over from Rahman et al. 2018, who attack the network of Abadi et al. 2016, section 5.3:
two convolutions of 64 maps, two layers of 384 units, and the output. It has 1,832,266 parameters
for 32 × 32 images in 10 classes (the original crops the images to 24 × 24).
"""

from __future__ import annotations

from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.catalog import Image, of_images

MAPS = 64
UNITS = 384


class CNN4(nn.Module):
    """Two convolutions of 5 × 5, each with ReLU and pooling, and two layers before the output.

    Takes images (n, channels, height, width), gives logits (n, classes).
    """

    def __init__(
        self, classes: int = 10, channels: int = 3, height: int = 32, width: int = 32
    ) -> None:
        super().__init__()
        if min(height, width) < 4:
            raise InputError(
                f"The network 'cnn4' takes images of at least 4 × 4 pixels, got {height} × "
                f"{width}; use the network 'mlp'"
            )
        self.features = nn.Sequential()
        self.features.add_module("conv1", nn.Conv2d(channels, MAPS, 5, padding=2))
        self.features.add_module("relu1", nn.ReLU())
        self.features.add_module("pool1", nn.MaxPool2d(2))
        self.features.add_module("conv2", nn.Conv2d(MAPS, MAPS, 5, padding=2))
        self.features.add_module("relu2", nn.ReLU())
        self.features.add_module("pool2", nn.MaxPool2d(2))
        flat = MAPS * (height // 2 // 2) * (width // 2 // 2)
        self.classifier = nn.Sequential()
        self.classifier.add_module("linear1", nn.Linear(flat, UNITS))
        self.classifier.add_module("relu3", nn.ReLU())
        self.classifier.add_module("linear2", nn.Linear(UNITS, UNITS))
        self.classifier.add_module("relu4", nn.ReLU())
        self.classifier.add_module("linear3", nn.Linear(UNITS, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.features(x).flatten(1))
        return logits


@of_images("cnn4")
def cnn4_of(image: Image, classes: int) -> CNN4:
    """The four-layer CNN for images of any size."""
    return CNN4(classes, *image)
