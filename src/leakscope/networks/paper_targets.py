"""The networks that Shokri, Strobel & Zick 2021 attack (sections 4.3.1 and 4.4, appendix D).

All have tanh between their layers, weights from N(0, 0.01²) and biases of 0, and are trained by
Adagrad at a rate of 0.01. The softmax of the paper is outside: these give logits. The paper gives
no size of the convolutions; they are 3 × 3 without a frame here.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.blocks import draw_normal
from leakscope.networks.catalog import Image, of_images, of_vectors
from leakscope.networks.mlp import MLP

MAPS = 32
UNITS = 128


def paper_mlp(features: int, hidden: Sequence[int], classes: int) -> MLP:
    """Fully connected layers with tanh and the paper's starting weights."""
    module = MLP([features, *hidden, classes], activation="tanh")
    draw_normal(module)
    return module


class PaperCNN(nn.Module):
    """Two convolutions of 32 maps, each with tanh and pooling, and a layer of 128 units.

    Takes images (n, channels, height, width), gives logits (n, classes).
    """

    def __init__(
        self, classes: int = 100, channels: int = 3, height: int = 32, width: int = 32
    ) -> None:
        super().__init__()
        if min(height, width) < 10:
            raise InputError(
                f"The network 'shokri-cifar' takes images of at least 10 × 10 pixels, got {height} "
                f"× {width}; use the network 'mlp'"
            )
        self.features = nn.Sequential()
        self.features.add_module("conv1", nn.Conv2d(channels, MAPS, 3))
        self.features.add_module("tanh1", nn.Tanh())
        self.features.add_module("pool1", nn.MaxPool2d(2))
        self.features.add_module("conv2", nn.Conv2d(MAPS, MAPS, 3))
        self.features.add_module("tanh2", nn.Tanh())
        self.features.add_module("pool2", nn.MaxPool2d(2))
        self.classifier = nn.Sequential()
        flat = MAPS * _left(height) * _left(width)
        self.classifier.add_module("linear1", nn.Linear(flat, UNITS))
        self.classifier.add_module("tanh3", nn.Tanh())
        self.classifier.add_module("linear2", nn.Linear(UNITS, classes))
        draw_normal(self)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.features(x).flatten(1))
        return logits


def _left(side: int) -> int:
    """What two convolutions of 3 × 3, each followed by pooling, leave of a side."""
    return ((side - 2) // 2 - 2) // 2


@of_vectors("shokri-purchase")
def purchase(features: int, classes: int) -> MLP:
    """600–1024–512–256–100 on Purchase-100."""
    return paper_mlp(features, (1024, 512, 256), classes)


@of_vectors("shokri-texas")
def texas(features: int, classes: int) -> MLP:
    """6170–2048–1024–512–256–100 on Texas-100."""
    return paper_mlp(features, (2048, 1024, 512, 256), classes)


@of_vectors("shokri-location")
def location(features: int, classes: int) -> MLP:
    """446–512–256–128–30 on Location-30, which stands in for Purchase and Texas."""
    return paper_mlp(features, (512, 256, 128), classes)


@of_vectors("shokri-adult", "shokri-hospital")
def adult(features: int, classes: int) -> MLP:
    """Four hidden layers of 20 on Adult and on Hospital."""
    return paper_mlp(features, (20, 20, 20, 20), classes)


@of_images("shokri-cifar")
def cifar(image: Image, classes: int) -> PaperCNN:
    """conv32–pool–conv32–pool–128–k on CIFAR-10 and CIFAR-100."""
    return PaperCNN(classes, *image)


@of_vectors("shokri-small")
def small(features: int, classes: int) -> MLP:
    """One hidden layer of 5, for synthetic data (Figure 14)."""
    return paper_mlp(features, (5,), classes)


@of_vectors("shokri-base")
def base(features: int, classes: int) -> MLP:
    """Two hidden layers of 50, for synthetic data (Figures 5 and 14)."""
    return paper_mlp(features, (50, 50), classes)


@of_vectors("shokri-big")
def big(features: int, classes: int) -> MLP:
    """Three hidden layers of 100, for synthetic data (Figure 14)."""
    return paper_mlp(features, (100, 100, 100), classes)
