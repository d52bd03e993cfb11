from __future__ import annotations

import pytest
import torch

from leakscope.errors import InputError
from leakscope.networks import CNN4, network


def test_the_number_of_parameters() -> None:
    convolutions = (3 * 25 + 1) * 64 + (64 * 25 + 1) * 64
    layers = (64 * 8 * 8 + 1) * 384 + 385 * 384 + 385 * 10
    assert convolutions + layers == 1_832_266
    assert sum(part.numel() for part in CNN4().parameters()) == 1_832_266


@pytest.mark.parametrize("image", [(3, 32, 32), (1, 28, 28), (3, 24, 24), (2, 7, 9), (1, 4, 4)])
def test_images_of_any_size(image: tuple[int, int, int]) -> None:
    assert network("cnn4", image, 3)(torch.zeros(2, *image)).shape == (2, 3)


def test_too_small_images_are_refused() -> None:
    with pytest.raises(InputError, match="'cnn4' takes images of at least 4 × 4 pixels, got 3 × 8"):
        network("cnn4", (1, 3, 8), 3)
