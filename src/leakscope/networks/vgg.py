"""VGG16 with batch normalization (Simonyan & Zisserman 2015, Table 1, column D).

Parameters: 138,365,992 in the form for ImageNet (1,000 classes), the same as torchvision's. The
form for CIFAR has the same convolutions, and a single linear layer on the 512 maps in place of
three with 4,096 units between them, as pytorch-cifar has it: 14,728,266 for 10 classes.
"""

from __future__ import annotations

from torch import Tensor, nn

from leakscope.networks.blocks import FORMS, Form, draw_for_relu, form_of
from leakscope.networks.catalog import Image, of_images
from leakscope.options import one_of

# The maps of each convolution, in five blocks; each block halves the side of the image.
BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
UNITS = 4096


class VGG16(nn.Module):
    """Thirteen convolutions with batch normalization; images (n, channels, height, width)."""

    def __init__(self, classes: int = 10, channels: int = 3, form: Form = "cifar") -> None:
        super().__init__()
        one_of("form", form, FORMS)
        self.features = _convolutions(channels)
        draw_for_relu(self.features)
        side = 7 if form == "imagenet" else 1
        self.pool = nn.AdaptiveAvgPool2d(side)
        self.classifier = nn.Sequential()
        if form == "imagenet":
            self.classifier.add_module("linear1", nn.Linear(512 * side * side, UNITS))
            self.classifier.add_module("relu1", nn.ReLU())
            self.classifier.add_module("dropout1", nn.Dropout(0.5))
            self.classifier.add_module("linear2", nn.Linear(UNITS, UNITS))
            self.classifier.add_module("relu2", nn.ReLU())
            self.classifier.add_module("dropout2", nn.Dropout(0.5))
            self.classifier.add_module("linear3", nn.Linear(UNITS, classes))
        else:
            self.classifier.add_module("linear1", nn.Linear(512, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return logits


def _convolutions(channels: int) -> nn.Sequential:
    features, before = nn.Sequential(), channels
    for block, maps in enumerate(BLOCKS, start=1):
        for place, after in enumerate(maps, start=1):
            features.add_module(f"conv{block}_{place}", nn.Conv2d(before, after, 3, padding=1))
            features.add_module(f"norm{block}_{place}", nn.BatchNorm2d(after))
            features.add_module(f"relu{block}_{place}", nn.ReLU())
            before = after
        features.add_module(f"pool{block}", nn.MaxPool2d(2))
    return features


@of_images("vgg16", "vgg16-bn")
def vgg16_of(image: Image, classes: int) -> VGG16:
    """VGG16 in the form that suits the size of the images."""
    channels, height, width = image
    return VGG16(classes, channels, form_of("vgg16", height, width))
