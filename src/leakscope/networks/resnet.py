"""ResNet-18 (He et al. 2016, Table 1).

Parameters: 11,689,512 in the form for ImageNet (1,000 classes), the same as torchvision's. The form
for CIFAR begins with a 3 × 3 convolution of stride 1 and no pooling, as is usual for 32 × 32 images
and as pytorch-cifar has it: 11,173,962 for 10 classes.
"""

from __future__ import annotations

from torch import Tensor, nn

from leakscope.networks.blocks import FORMS, Form, Sum, draw_for_relu, form_of
from leakscope.networks.catalog import Image, of_images
from leakscope.options import one_of

# The maps of each stage, of two blocks each; every stage but the first halves the side.
STAGES = (64, 128, 256, 512)


class Block(nn.Module):
    """Two 3 × 3 convolutions, and a shortcut around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride > 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.shortcut.add_module("conv", conv)
            self.shortcut.add_module("norm", nn.BatchNorm2d(after))
        self.sum = Sum()
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """From (n, before, h, w) to (n, after, h / stride, w / stride)."""
        inner = self.relu1(self.norm1(self.conv1(x)))
        out: Tensor = self.relu2(self.sum(self.norm2(self.conv2(inner)), self.shortcut(x)))
        return out


class ResNet18(nn.Module):
    """Eight blocks of two convolutions; images (n, channels, height, width)."""

    def __init__(self, classes: int = 10, channels: int = 3, form: Form = "cifar") -> None:
        super().__init__()
        one_of("form", form, FORMS)
        self.features = nn.Sequential()
        first = STAGES[0]
        if form == "imagenet":
            stem = nn.Conv2d(channels, first, 7, stride=2, padding=3, bias=False)
        else:
            stem = nn.Conv2d(channels, first, 3, padding=1, bias=False)
        self.features.add_module("conv", stem)
        self.features.add_module("norm", nn.BatchNorm2d(first))
        self.features.add_module("relu", nn.ReLU())
        if form == "imagenet":
            self.features.add_module("pool", nn.MaxPool2d(3, stride=2, padding=1))
        before = first
        for stage, after in enumerate(STAGES, start=1):
            stride = 1 if stage == 1 else 2
            self.features.add_module(f"block{stage}_1", Block(before, after, stride))
            self.features.add_module(f"block{stage}_2", Block(after, after, 1))
            before = after
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(before, classes)
        draw_for_relu(self)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return logits


@of_images("resnet18")
def resnet18_of(image: Image, classes: int) -> ResNet18:
    """ResNet-18 in the form that suits the size of the images."""
    channels, height, width = image
    return ResNet18(classes, channels, form_of("resnet18", height, width))
