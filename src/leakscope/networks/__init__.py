"""Plain torch modules: networks by name, those of the papers, and the one that attacks.

Every network gives logits: a softmax belongs to the loss, and to the model around the module. Each
activation is a module of its own that is used once, and images are flattened by the tensor's own
method, so that every layer can be hooked, stacked, pruned and explained. The package needs the
extra ``leakscope[torch]``, and imports nothing of Leakscope but errors and options.
"""

from __future__ import annotations

from leakscope.errors import MissingExtraError

try:
    import torch  # noqa: F401 -- here once, for a sentence in place of a traceback
except ImportError as error:
    raise MissingExtraError("A torch network", "torch") from error

from leakscope.networks.catalog import network, network_names
from leakscope.networks.cnn import CNN4
from leakscope.networks.inference import AttackNetwork
from leakscope.networks.lenet import LeNet5
from leakscope.networks.mlp import MLP
from leakscope.networks.mobilenet import MobileNetV2
from leakscope.networks.paper_targets import PaperCNN
from leakscope.networks.resnet import ResNet18
from leakscope.networks.vgg import VGG16

__all__ = [
    "CNN4",
    "MLP",
    "VGG16",
    "AttackNetwork",
    "LeNet5",
    "MobileNetV2",
    "PaperCNN",
    "ResNet18",
    "network",
    "network_names",
]
