from __future__ import annotations

import pytest
import torch

from leakscope.errors import InputError
from leakscope.networks import MLP, PaperCNN, network

WIDTHS = {
    ("shokri-purchase", 600, 100): (600, 1024, 512, 256, 100),
    ("shokri-texas", 6170, 100): (6170, 2048, 1024, 512, 256, 100),
    ("shokri-location", 446, 30): (446, 512, 256, 128, 30),
    ("shokri-adult", 104, 2): (104, 20, 20, 20, 20, 2),
    ("shokri-hospital", 127, 2): (127, 20, 20, 20, 20, 2),
    ("shokri-small", 10, 2): (10, 5, 2),
    ("shokri-base", 10, 100): (10, 50, 50, 100),
    ("shokri-big", 10, 2): (10, 100, 100, 100, 2),
}


@pytest.mark.parametrize(("name", "features", "classes"), WIDTHS)
def test_the_widths_of_the_paper(name: str, features: int, classes: int) -> None:
    with torch.device("meta"):
        module = network(name, features, classes)
    assert isinstance(module, MLP)
    assert module.widths == WIDTHS[name, features, classes]
    assert (module.activation, module.dropout) == ("tanh", 0)


def test_the_starting_weights_of_the_paper() -> None:
    torch.manual_seed(0)
    mlp, cnn = network("shokri-purchase", 600, 100), network("shokri-cifar", (3, 32, 32), 100)
    for module in (mlp, cnn):
        for name, part in module.named_parameters():
            if name.endswith("bias"):
                assert not part.detach().any()
            else:
                off = 6 * 0.01 / (2 * part.numel()) ** 0.5
                assert float(part.detach().std()) == pytest.approx(0.01, abs=off)


def test_the_network_of_images() -> None:
    module = network("shokri-cifar", (3, 32, 32), 100)
    assert isinstance(module, PaperCNN)
    assert module.features(torch.zeros(1, 3, 32, 32)).shape == (1, 32, 6, 6)
    convolutions = (3 * 9 + 1) * 32 + (32 * 9 + 1) * 32
    layers = (32 * 6 * 6 + 1) * 128 + 129 * 100
    assert sum(part.numel() for part in module.parameters()) == convolutions + layers
    for image in ((1, 28, 28), (2, 10, 13)):
        assert network("shokri-cifar", image, 4)(torch.zeros(2, *image)).shape == (2, 4)
    with pytest.raises(InputError, match="'shokri-cifar' takes images of at least 10 × 10 pixels"):
        network("shokri-cifar", (1, 9, 10), 4)
