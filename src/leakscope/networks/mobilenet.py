"""MobileNetV2 (Sandler et al. 2018, Table 2).

Parameters: 3,504,872 in the form for ImageNet (1,000 classes), the same as torchvision's. The form
for CIFAR differs in strides alone: the first convolution and the second stage keep the side, so
that 32 × 32 images end as 4 × 4; 2,236,682 for 10 classes. (pytorch-cifar has the same strides and
2,296,922 parameters: it has 1 × 1 convolutions in four shortcuts and one more in the first block,
which the paper has not.)
"""

from __future__ import annotations

from torch import Tensor, nn

from leakscope.networks.blocks import FORMS, Form, Sum, draw_for_relu, form_of
from leakscope.networks.catalog import Image, of_images
from leakscope.options import one_of

# Expansion, maps, blocks and stride of each stage.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
FIRST, LAST = 32, 1280


class InvertedResidual(nn.Module):
    """A block that widens, filters each map alone and narrows; a shortcut where shapes agree."""

    def __init__(self, before: int, after: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = before * expansion
        self.layers = nn.Sequential()
        if expansion > 1:
            self.layers.add_module("expand", _convolution(before, wide, 1))
        self.layers.add_module("filter", _convolution(wide, wide, 3, stride, groups=wide))
        self.layers.add_module("narrow", nn.Conv2d(wide, after, 1, bias=False))
        self.layers.add_module("norm", nn.BatchNorm2d(after))
        self.sum = Sum() if stride == 1 and before == after else None

    def forward(self, x: Tensor) -> Tensor:
        """From (n, before, h, w) to (n, after, h / stride, w / stride)."""
        out: Tensor = self.layers(x)
        return out if self.sum is None else self.sum(x, out)


class MobileNetV2(nn.Module):
    """Seventeen inverted residuals; images (n, channels, height, width)."""

    def __init__(self, classes: int = 10, channels: int = 3, form: Form = "cifar") -> None:
        super().__init__()
        one_of("form", form, FORMS)
        large = form == "imagenet"
        self.features = nn.Sequential()
        self.features.add_module("stem", _convolution(channels, FIRST, 3, 2 if large else 1))
        before = FIRST
        for stage, (expansion, after, blocks, stride) in enumerate(STAGES, start=1):
            first_stride = 1 if stage == 2 and not large else stride
            for place in range(1, blocks + 1):
                own_stride = first_stride if place == 1 else 1
                block = InvertedResidual(before, after, own_stride, expansion)
                self.features.add_module(f"block{stage}_{place}", block)
                before = after
        self.features.add_module("widen", _convolution(before, LAST, 1))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(LAST, classes)
        draw_for_relu(self)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        pooled = self.pool(self.features(x)).flatten(1)
        logits: Tensor = self.classifier(self.dropout(pooled))
        return logits


def _convolution(
    before: int, after: int, size: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    layers = nn.Sequential()
    padding = size // 2
    conv = nn.Conv2d(before, after, size, stride, padding, groups=groups, bias=False)
    layers.add_module("conv", conv)
    layers.add_module("norm", nn.BatchNorm2d(after))
    layers.add_module("relu", nn.ReLU6())
    return layers


@of_images("mobilenet-v2")
def mobilenet_of(image: Image, classes: int) -> MobileNetV2:
    """MobileNetV2 in the form that suits the size of the images."""
    channels, height, width = image
    return MobileNetV2(classes, channels, form_of("mobilenet-v2", height, width))
