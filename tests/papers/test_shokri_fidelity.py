from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import Saliency
from captum.metrics import infidelity as captum_infidelity
from captum.metrics import sensitivity_max
from scipy.special import softmax

from leakscope.models.attributions import attributions
from leakscope.models.torch import TorchModel
from leakscope.networks import MLP
from leakscope.papers.shokri_fidelity import infidelity, outputs_of, sensitivity

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4))
NOISE = 0.3 * RNG.normal(size=(5, 6, 4))


@pytest.fixture(scope="module")
def model() -> TorchModel:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = MLP([4, 8, 3]).double()
    return TorchModel(module, outputs="logits")


def test_outputs_are_logits_or_probabilities_of_a_class(model: TorchModel) -> None:
    logits = model.module(torch.from_numpy(X)).detach().numpy()
    target = np.array([0, 1, 2, 0, 1, 2])
    rows = np.arange(6)
    np.testing.assert_allclose(outputs_of(model, X, target, "logit"), logits[rows, target])
    expected = softmax(logits, axis=1)[rows, target]
    np.testing.assert_allclose(outputs_of(model, X, target, "probability"), expected)


def test_infidelity_is_captums(model: TorchModel) -> None:
    target = np.zeros(6, dtype=np.intp)
    explanations = attributions(model, X, target=target)
    changes = iter(NOISE)

    def change(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        noise = torch.from_numpy(next(changes))
        return noise, inputs - noise

    expected = captum_infidelity(
        model.module, change, torch.from_numpy(X), torch.from_numpy(explanations), target=0,
        n_perturb_samples=5, max_examples_per_batch=6,
    )  # fmt: skip
    found = infidelity(
        lambda asked: outputs_of(model, asked, target, "logit"), X, explanations, NOISE
    )
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10)
    assert found.min() > 0


def test_a_linear_output_is_explained_without_error() -> None:
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    explanations = np.tile(weights, (6, 1))
    found = infidelity(lambda asked: asked @ weights, X, explanations, NOISE)
    np.testing.assert_allclose(found, 0.0, atol=1e-25)


def test_sensitivity_is_captums(model: TorchModel) -> None:
    target = np.zeros(6, dtype=np.intp)
    changes = iter(NOISE)

    def saliency(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        given = tuple(one.detach().requires_grad_() for one in inputs)
        return Saliency(model.module).attribute(given, target=0, abs=False)

    def change(inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (inputs + torch.from_numpy(next(changes)),)

    expected = sensitivity_max(
        saliency, torch.from_numpy(X), change, n_perturb_samples=5, max_examples_per_batch=6
    )
    found = sensitivity(
        lambda asked: attributions(model, asked, target=target),
        X, attributions(model, X, target=target), NOISE,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-6)


def test_an_explanation_of_zero_changes_by_the_change_itself() -> None:
    found = sensitivity(lambda asked: asked, np.zeros((1, 2)), np.zeros((1, 2)), np.ones((1, 1, 2)))
    np.testing.assert_allclose(found, np.sqrt(2))
