from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from leakscope.errors import ModelError
from leakscope.models.attributions import logit_weights
from leakscope.networks.attribution import follow_back

X = np.random.default_rng(0).normal(size=(9, 6))
START = np.random.default_rng(1).normal(size=(1, 6))


class Forward(nn.Module):
    """Two layers without biases, in whatever way they are called."""

    def __init__(self, call, inner=6, out=3):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(inner, inner, bias=False), nn.Linear(6, out, bias=False)
        self.relu, self.call = nn.ReLU(inplace=True), call
        self.double()

    def forward(self, x):
        return self.call(self, x)


def explained(module, rule, baseline=None, task="classification", kind=None):
    def weigh(logits, start, rows):
        return logit_weights(logits, start, rule, "logit", None, task)

    return follow_back(module, X, weigh, rule, baseline, 1e-12, kind)


def rise(module, baseline=None):
    """The logit of the predicted class, above that of the baseline."""
    with torch.no_grad():
        z = module(torch.tensor(X)).numpy()
        best, rows = z.argmax(axis=1), np.arange(len(X))
        if baseline is None:
            return z[rows, best]
        return z[rows, best] - module(torch.tensor(baseline)).numpy()[0, best]


def looks_again(module, x):
    h = module.a(x)
    return module.b(module.relu(h) + h)  # h has been worked on in place


def drops(function):
    def call(module, x):
        h = module.a(x)
        function(h)
        return module.b(h)

    return call


def adds_in_place(module, x):
    h = module.a(x)
    t = torch.tanh(h)
    h += t  # the nonlinearity has seen what h was before
    h *= 2
    return module.b(torch.tanh(h))


def changes_its_records(module, x):
    x -= 0.0
    x *= 2
    return module.b(torch.tanh(module.a(x)))


def adds_to_a_bent_one(module, x):
    h = torch.tanh(module.a(x).clone())
    return module.b(functional.relu(h + x).add_(h))


IN_PLACE = {
    "looks again": looks_again,
    "relu_": drops(torch.relu_),
    "tanh_": drops(torch.Tensor.tanh_),
    "clamp_": drops(lambda h: h.clamp_(min=0)),
    "leaky_relu": drops(lambda h: functional.leaky_relu(h, 0.1, True)),
    "iadd": adds_in_place,
    "records": changes_its_records,
    "add_": adds_to_a_bent_one,
}


@pytest.mark.parametrize("case", IN_PLACE)
class TestInPlace:
    """What torch works on in place is so for the rules too: sums are those of the outputs."""

    def test_relevance(self, case):
        module = Forward(IN_PLACE[case])
        found = explained(module, "lrp").sum(axis=1)
        np.testing.assert_allclose(found, rise(module), rtol=1e-8, atol=1e-10)

    @pytest.mark.parametrize("baseline", [None, START], ids=["zeros", "another"])
    def test_contributions(self, case, baseline):
        module = Forward(IN_PLACE[case])
        found = explained(module, "deeplift", baseline).sum(axis=1)
        start = np.zeros((1, 6)) if baseline is None else baseline
        np.testing.assert_allclose(found, rise(module, start), atol=1e-10)


def test_the_gradient_of_a_module_that_works_on_its_records():
    module = Forward(changes_its_records)
    apart = Forward(lambda own, x: own.b(torch.tanh(own.a(2 * x))))
    np.testing.assert_allclose(explained(module, "gradient"), explained(apart, "gradient"))


def test_pooling_may_be_followed_by_work_in_place():
    def call(module, x):
        pooled = functional.max_pool1d(module.a(x)[:, None], 2).add_(0.5)
        return functional.pad(module.relu(pooled), (0, 3)).flatten(1) @ module.b.weight.T

    module = Forward(call)
    found = explained(module, "deeplift", START).sum(axis=1)
    np.testing.assert_allclose(found, rise(module, START), atol=1e-10)


@pytest.mark.parametrize("rule", ["lrp", "deeplift"])
@pytest.mark.parametrize("mixing", [torch.softmax, torch.log_softmax])
def test_a_softmax_that_is_not_the_end_has_no_rule(rule, mixing):
    module = Forward(lambda own, x: own.b(mixing(own.a(x), dim=1).clamp(max=9)))
    sentence = (
        rf"fails in the layer 'b' \(Linear\): There is no rule of {rule} for the call softmax"
    )
    with pytest.raises(ModelError, match=sentence):
        explained(module, rule)
    assert np.isfinite(explained(module, "gradient")).all()


def test_a_softmax_that_is_only_looked_at_is_no_obstacle():
    def call(module, x):
        z = module.b(torch.tanh(module.a(x)))
        module.seen = z.softmax(dim=1).detach().max()
        return z

    module = Forward(call)
    np.testing.assert_allclose(explained(module, "lrp").sum(axis=1), rise(module), rtol=1e-8)


@pytest.mark.parametrize("rule", ["gradient", "lrp", "deeplift"])
@pytest.mark.parametrize(
    "call",
    [
        lambda own, x: torch.softmax(input=own.b(torch.tanh(input=own.a(x))), dim=1),
        lambda own, x: own.b(torch.tanh((own.a.weight @ x.T).T)),
    ],
    ids=["input by its name", "transposed"],
)
def test_other_ways_to_call_the_same(rule, call):
    plain = Forward(lambda own, x: own.b(torch.tanh(own.a(x))))
    found, want = explained(Forward(call), rule), explained(plain, rule)
    np.testing.assert_allclose(found, want, atol=1e-10)


@pytest.mark.parametrize("rule", ["lrp", "deeplift"])
def test_rows_that_are_no_records(rule):
    def call(module, x):
        return module.b(torch.tanh(module.a(x.reshape(-1, 2))).reshape(len(x), -1))

    module = Forward(call, inner=2)
    start = None if rule == "lrp" else START
    found = explained(module, rule, start).sum(axis=1)
    np.testing.assert_allclose(found, rise(module, start), rtol=1e-8, atol=1e-10)


def test_a_failure_at_every_baseline_is_told():
    module = Forward(lambda own, x: own.b(own.b(x)) if x.any() else own.b(own.a(x)))
    with pytest.raises(ModelError, match=r"fails in the layer 'b' \(Linear\): mat1"):
        explained(module, "deeplift")


@pytest.mark.parametrize("rule", ["lrp", "deeplift"])
def test_calls_that_no_rule_sees(rule):
    module = Forward(lambda own, x: own.b(torch.vmap(torch.tanh)(own.a(x))))
    with pytest.raises(ModelError, match=f"calls Tanh in a way that {rule} cannot see"):
        explained(module, rule)


def test_a_checkpoint_does_not_touch_the_slopes():
    from torch.utils.checkpoint import checkpoint

    def call(module, x):
        inner = partial(checkpoint, lambda z: torch.tanh(module.a(z)), use_reentrant=False)
        return module.b(inner(x))

    module = Forward(call)
    np.testing.assert_allclose(explained(module, "lrp").sum(axis=1), rise(module), rtol=1e-8)


def test_contributions_that_do_not_add_up_are_refused():
    # A ReLU by a mask of which no gradient tells that it depends on the record.
    module = Forward(lambda own, x: own.b((h := own.a(x)) * (h > 0)))
    with pytest.raises(ModelError, match="deeplift cannot see, as contributions do not add up"):
        explained(module, "deeplift", START)
    assert np.isfinite(explained(module, "gradient")).all()


@pytest.mark.parametrize("ending", [torch.sigmoid, torch.Tensor.sigmoid_])
def test_one_probability_whose_logit_is_hidden(ending):
    module = Forward(lambda own, x: ending(own.b(torch.tanh(own.a(x)))) * 1.0, out=1)
    for rule in ("gradient", "lrp", "deeplift"):
        with pytest.raises(ModelError, match="whose logits cannot be found"):
            explained(module, rule, kind="probabilities")
        with pytest.raises(ModelError, match="whose logits cannot be found"):
            explained(module, rule, kind="log-probabilities")


def test_contributions_below_the_rounding_of_the_outputs_are_not_refused():
    def call(module, x):
        return 1e-7 * module.b(torch.tanh(module.a(x))) + 100.0

    module = Forward(call).float()
    found = explained(module, "deeplift", START)
    plain = Forward(lambda own, x: own.b(torch.tanh(own.a(x)))).float()
    best = np.abs(found).sum(axis=1)
    assert (best > 0).all()
    assert (best < 1e-6 * np.abs(explained(plain, "deeplift", START)).sum(axis=1).max()).all()
