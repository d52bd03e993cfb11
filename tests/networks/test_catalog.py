"""Every network by its name: what it gives, what it refuses, and that its layers can be hooked."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from captum.attr import LRP
from torch import Tensor, nn

from leakscope.errors import InputError, UnknownNameError
from leakscope.networks import MLP, network, network_names
from leakscope.networks.blocks import Sum

IMAGES = {
    "cnn4": (3, 32, 32),
    "lenet5": (1, 28, 28),
    "mobilenet-v2": (3, 32, 32),
    "resnet18": (3, 32, 32),
    "shokri-cifar": (3, 32, 32),
    "vgg16": (3, 32, 32),
    "vgg16-bn": (3, 32, 32),
}


def made(name: str, classes: int = 5) -> tuple[nn.Module, Tensor]:
    """The network in evaluation mode, and two records for it."""
    shape = IMAGES.get(name, (6,))
    torch.manual_seed(0)
    return network(name, shape, classes).eval(), torch.randn(2, *shape)


def test_the_names() -> None:
    names = network_names()
    assert names == sorted(names)
    assert set(IMAGES) < set(names)
    assert {"mlp", "shokri-purchase", "shokri-texas", "shokri-adult", "shokri-base"} < set(names)


@pytest.mark.parametrize("name", network_names())
def test_a_network_gives_logits(name: str) -> None:
    module, X = made(name)
    logits = module(X)
    assert logits.shape == (2, 5)
    last = [layer for layer in module.modules() if not list(layer.children())][-1]
    assert isinstance(last, nn.Linear)


@pytest.mark.parametrize("name", network_names())
def test_each_layer_is_used_once_and_none_flattens(name: str) -> None:
    # What explanations by layer-wise rules need of a module.
    module, X = made(name)
    used: Counter[str] = Counter()

    def count(own: str) -> Callable[..., None]:
        return lambda *_: used.update([own])

    for own, layer in module.named_modules():
        assert not isinstance(layer, nn.Flatten)
        layer.register_forward_hook(count(own))
    module(X)
    assert set(used) == {own for own, _ in module.named_modules()}
    assert set(used.values()) == {1}


@pytest.mark.parametrize("name", ["mlp", "lenet5", "cnn4", "vgg16", "shokri-cifar", "shokri-adult"])
def test_relevance_can_be_propagated(name: str) -> None:
    module, X = made(name)
    relevance = LRP(module).attribute(X.requires_grad_(), target=0)
    assert relevance.shape == X.shape
    assert bool(torch.isfinite(relevance).all())
    assert float(relevance.detach().abs().sum()) > 0


def test_the_same_seed_draws_the_same_weights() -> None:
    (one, X), (other, _) = made("resnet18"), made("resnet18")
    assert torch.equal(one(X), other(X))


def test_a_network_is_the_factory_of_a_recipe() -> None:
    module = partial(network, "shokri-purchase")(600, 100)
    assert isinstance(module, MLP)
    assert module.widths == (600, 1024, 512, 256, 100)


def test_the_values_of_an_image_are_features_too() -> None:
    module = network("mlp", (1, 4, 4), 3)
    assert isinstance(module, MLP)
    assert module.widths == (16, 50, 50, 3)
    assert module(torch.zeros(2, 1, 4, 4)).shape == (2, 3)


def test_large_images_have_the_large_form() -> None:
    with torch.device("meta"):
        small, large = (network("resnet18", (3, side, side), 10) for side in (64, 224))
    assert not hasattr(small.features, "pool")
    assert hasattr(large.features, "pool")


REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown": (lambda: network("resnet19", 3), UnknownNameError, "did you mean 'resnet18'"),
    "vectors": (
        lambda: network("resnet18", 446, 30),
        InputError,
        r"The network 'resnet18' takes images, where a record has the shape \(446,\); give inputs=",
    ),
    "too small": (
        lambda: network("vgg16", (1, 28, 28), 10),
        InputError,
        "'vgg16' takes images of at least 32 × 32 pixels, got 28 × 28; use 'lenet5' or 'cnn4'",
    ),
    "text": (lambda: network("mlp", "ten"), InputError, "option inputs must be a whole number"),
    "half": (lambda: network("mlp", 2.5), InputError, "inputs must be a whole number"),  # type: ignore[arg-type]
    "nothing": (lambda: network("mlp", ()), InputError, "The option inputs is empty"),
    "classes": (lambda: network("mlp", 3, 0), InputError, "classes must be a whole number of at l"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_built_is_one_sentence(case: str) -> None:
    build, kind, sentence = REFUSALS[case]
    with pytest.raises(kind, match=sentence) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_a_sum_is_a_sum() -> None:
    assert Sum()(torch.tensor([1.0]), torch.tensor([2.5])).tolist() == [3.5]


@pytest.mark.slow
def test_without_torch_there_is_one_sentence() -> None:
    program = """
import sys

class NotInstalled:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NotInstalled())
try:
    import leakscope.networks
except ImportError as error:
    print(type(error).__name__, error)
from leakscope.registry import entries
print([entry.name for entry in entries("model")])
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    first, second = run.stdout.splitlines()
    assert first == (
        "MissingExtraError A torch network needs an optional package; pip install "
        "'leakscope[torch]'"
    )
    assert second == "['booster', 'callable', 'scikit-learn', 'torch']"


@pytest.mark.slow
def test_a_model_without_torch_does_not_load_it() -> None:
    program = """
import sys
from leakscope.models import as_model
as_model(lambda X: X)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
