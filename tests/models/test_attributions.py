from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from leakscope.errors import InputError, ModelError, NotApplicableError
from leakscope.models import as_model
from leakscope.models.attributions import attributions, logit_weights, number_of_features
from leakscope.models.torch import TorchModel

X = np.random.default_rng(0).normal(size=(12, 5))
RULES = ("gradient", "lrp", "deeplift")


def network(outputs=3, bias=True):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6, bias), nn.Tanh(), nn.Linear(6, outputs, bias))


@pytest.mark.parametrize("output", ["logit", "probability"])
@pytest.mark.parametrize("rule", RULES)
def test_a_record_of_zeros_is_explained_by_zeros_where_there_are_no_biases(rule, output):
    found = attributions(TorchModel(network(bias=False)), X[:1] * 0, rule=rule, output=output)
    assert np.isfinite(found).all()
    assert rule == "gradient" or not found.any()


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_logit_of_0_has_no_relevance_to_share_out(outputs):
    weights = logit_weights(np.zeros((2, outputs)), np.zeros((1, outputs)), "lrp", "probability",
                            None, "classification")  # fmt: skip
    assert not weights.any()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("output", ["logit", "probability"])
def test_one_output_is_explained_for_the_class_that_is_predicted(rule, output):
    module = network(1).double()
    model, pair = TorchModel(module), TorchModel(Pair(module))
    found = attributions(model, X, rule=rule, output=output, epsilon=1e-12)
    want = attributions(pair, X, rule=rule, output=output, epsilon=1e-12)
    if output == "logit":
        want *= 2.0  # each class has a half of the log-odds
    np.testing.assert_allclose(found, want, atol=1e-9)
    assert 0 < model.predict(X).sum() < len(X)


class Pair(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        logit = self.module(x)
        return torch.cat([-logit / 2, logit / 2], dim=1)


class Scaled(nn.Module):
    """A probability of which nothing in the graph tells that it is one."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return torch.sigmoid(self.module(x)) * 1.0


@pytest.mark.parametrize("rule", RULES)
def test_what_is_said_of_the_outputs_is_believed(rule):
    module = Scaled(network(1))
    with pytest.raises(ModelError, match="whose logits cannot be found"):
        attributions(TorchModel(module, outputs="probabilities"), X, rule=rule)
    assert attributions(TorchModel(module, outputs="logits"), X, rule=rule).shape == X.shape


class Restless(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, 3)

    def forward(self, x):
        return self.out(nn.functional.dropout(x, training=True))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("module", "task", "sentence"),
    [
        (Restless(), "classification", "gives two answers for the same records"),
        (nn.Sequential(network(), nn.Sigmoid()), "classification", "not probabilities summing"),
        (network(2), "regression", "has 2 outputs per record"),
    ],
)
def test_what_is_wrong_with_the_answers_is_wrong_with_explanations(rule, module, task, sentence):
    for _ in range(2):
        with pytest.raises(ModelError, match=sentence):
            attributions(TorchModel(module, task=task), X, rule=rule)


def test_the_number_of_features():
    assert number_of_features(TorchModel(network())) == 5
    fitted = LogisticRegression().fit(X, np.arange(12) % 2)
    assert number_of_features(as_model(fitted)) == 5
    with pytest.raises(NotApplicableError, match="does not say how many features"):
        number_of_features(TorchModel(nn.Conv2d(1, 1, 3)))


def test_options_and_classes_are_checked():
    model = TorchModel(network())
    with pytest.raises(InputError, match="class numbers run from 0 to 3"):
        attributions(model, X, target=np.arange(12) % 4)
    with pytest.raises(InputError, match="one class number for each of 12 records"):
        attributions(model, X, target=np.zeros(12))
