from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from leakscope.errors import ModelError
from leakscope.models.attributions import logit_weights
from leakscope.networks.attribution import follow_back, inputs_of

captum = pytest.importorskip("captum.attr")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 7))
IMAGES = RNG.normal(size=(6, 2, 8, 8))


def weigh(logits, start, rows, rule="gradient", output="logit", target=None, task="classification"):
    chosen = None if target is None else target[rows]
    return logit_weights(logits, start, rule, output, chosen, task)


def explained(module, X, rule="gradient", output="logit", baseline=None, epsilon=1e-9):
    return follow_back(module, X, partial(weigh, rule=rule, output=output), rule, baseline, epsilon)


@pytest.fixture
def tanh():
    torch.manual_seed(1)
    layers = [nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3)]
    return nn.Sequential(*layers).double()


class Images(nn.Module):
    """A network of images in which captum finds nothing to trip over."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(2, 4, 3, padding=1), nn.ReLU()
        self.norm, self.pool = nn.BatchNorm2d(4), nn.MaxPool2d(2)
        self.mean, self.out = nn.AvgPool2d(2), nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.mean(self.pool(self.norm(self.relu(self.conv(x))))).flatten(1))


@pytest.fixture
def images():
    torch.manual_seed(2)
    module = Images().double()
    module(torch.randn(50, 2, 8, 8).double())  # gives the layer that normalizes its averages
    return module.eval()


class Functional(nn.Module):
    """The same as ``tanh`` in functions, with a layer used twice, a flattening and a softmax."""

    def __init__(self, layers, end="softmax"):
        super().__init__()
        self.first, self.second, self.third = layers[0], layers[2], layers[4]
        self.flat, self.end = nn.Flatten(), end

    def forward(self, x):
        x = torch.tanh(self.first(self.flat(x)))
        x = self.flat(functional.relu(self.second(x), inplace=True))
        logits = self.third(x)
        if self.end == "softmax":
            return logits.softmax(dim=1)
        if self.end == "log":
            return functional.log_softmax(logits, dim=1).clamp(max=0.0)
        return torch.softmax(logits, dim=1).unsqueeze(1).squeeze(1)


def by_captum(kind, module, X, baseline=None, epsilon=1e-9):
    module = copy.deepcopy(module)
    if kind is captum.LRP:
        from captum.attr._utils.lrp_rules import EpsilonRule

        for layer in module.modules():
            if isinstance(layer, nn.Linear):
                layer.rule = EpsilonRule(epsilon)
    inputs = torch.tensor(X)
    target = module(inputs).argmax(dim=1)
    start = {} if baseline is None else {"baselines": torch.tensor(baseline)}
    return kind(module).attribute(inputs, target=target, **start).detach().numpy()


def logits_of(module, X):
    with torch.no_grad():
        return module(torch.tensor(X)).numpy()


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")
@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks and attributes")
class TestAgainstCaptum:
    def test_gradient(self, tanh):
        inputs = torch.tensor(X)
        target = tanh(inputs).argmax(dim=1)
        theirs = captum.Saliency(tanh).attribute(inputs, target=target, abs=False)
        np.testing.assert_allclose(explained(tanh, X), theirs.numpy(), atol=1e-12)

    @pytest.mark.parametrize(
        ("network", "epsilon"), [("tanh", 1e-9), ("tanh", 0.1), ("images", 1e-9)]
    )
    def test_relevance(self, network, epsilon, request):
        module, records = request.getfixturevalue(network), X if network == "tanh" else IMAGES
        theirs = by_captum(captum.LRP, module, records, epsilon=epsilon)
        ours = explained(module, records, "lrp", epsilon=epsilon)
        np.testing.assert_allclose(ours, theirs, atol=1e-8)

    @pytest.mark.parametrize("baseline", ["zeros", "one", "each"])
    @pytest.mark.parametrize("network", ["tanh", "images"])
    def test_rescale(self, network, baseline, request):
        module, records = request.getfixturevalue(network), X if network == "tanh" else IMAGES
        others = np.random.default_rng(5).normal(size=records.shape)
        start = {"zeros": None, "one": others[:1], "each": others}[baseline]
        theirs = by_captum(captum.DeepLift, module, records, start)
        np.testing.assert_allclose(
            explained(module, records, "deeplift", baseline=start), theirs, atol=1e-8
        )


class TestByHand:
    """Two inputs, two tanh units, two logits; u = (x₁ + 2x₂, −x₁), z = (t₁ − t₂, 3t₂ + ½)."""

    @pytest.fixture
    def small(self):
        module = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)).double()
        with torch.no_grad():
            module[0].weight[:] = torch.tensor([[1.0, 2.0], [-1.0, 0.0]])
            module[0].bias[:] = 0.0
            module[2].weight[:] = torch.tensor([[1.0, -1.0], [0.0, 3.0]])
            module[2].bias[:] = torch.tensor([0.0, 0.5])
        return module

    # At x = (0.5, 0.25): u = (1, −0.5), t = (0.7615941559557649, −0.46211715726000974), and the
    # first logit, 1.2237113132157746, is larger than the second, −0.8863514717800292.
    x = np.array([[0.5, 0.25]])
    t = np.array([0.7615941559557649, -0.46211715726000974])

    def test_the_gradient(self, small):
        d1, d2 = 1 - self.t**2
        np.testing.assert_allclose(explained(small, self.x), [[d1 + d2, 2 * d1]], rtol=1e-12)

    def test_the_gradient_of_the_probability(self, small):
        p = 0.8918773878767648  # 1 / (1 + exp(−0.8863514717800292 − 1.2237113132157746))
        d1, d2 = 1 - self.t**2
        # z₁ − z₂ = t₁ − 4t₂ − ½, whose slope by u₂ = −x₁ turns its sign again.
        want = p * (1 - p) * np.array([[d1 + 4 * d2, 2 * d1]])
        ours = explained(small, self.x, output="probability")
        np.testing.assert_allclose(ours, want, rtol=1e-9)

    def test_relevance_and_contributions(self, small):
        # t₁ brings 0.7616 and t₂ 0.4621; of u₁ each input has a half, of u₂ the first all.
        want = [[self.t[0] / 2 - self.t[1], self.t[0] / 2]]
        np.testing.assert_allclose(explained(small, self.x, "lrp"), want, rtol=1e-8)
        # Without biases and from zeros the rescale rule is the same.
        np.testing.assert_allclose(explained(small, self.x, "deeplift"), want, rtol=1e-12)


class Pooled(nn.Module):
    """The largest of two numbers, with a ReLU before it or after it."""

    def __init__(self, order):
        super().__init__()
        self.order = order

    def forward(self, x):
        for step in self.order:
            x = functional.max_pool1d(x, 2) if step == "pool" else x.relu()
        return x.flatten(1)


@pytest.mark.parametrize("order", [("pool",), ("pool", "relu"), ("relu", "pool")], ids=str)
def test_the_largest_of_a_window_by_its_definition(order):
    # Captum 0.9 is off by 1 and more here where one stands directly before the other.
    rng = np.random.default_rng(0)
    ends, starts = rng.normal(size=(2, 300, 1, 2))
    weights = lambda z, start, rows: np.ones_like(z)  # noqa: E731
    found = follow_back(Pooled(order), ends, weights, "deeplift", starts)[:, 0]
    for (end,), (start,), own in zip(ends, starts, found, strict=True):
        u, before = (np.maximum(v, 0) if order[0] == "relu" else v for v in (end, start))
        top = max(u.max(), before.max())
        want = np.zeros(2)
        want[u.argmax()] += top - before.max()
        want[before.argmax()] += u.max() - top
        if order[-1] == "relu":
            rise = max(u.max(), 0) - max(before.max(), 0)
            want *= rise / (u.max() - before.max())
        np.testing.assert_allclose(own, want, atol=1e-6)  # a module of no weights is in single


class TestWhatHolds:
    @pytest.mark.parametrize("output", ["logit", "probability"])
    @pytest.mark.parametrize("network", ["tanh", "images"])
    def test_contributions_add_up(self, network, output, request):
        module, records = request.getfixturevalue(network), X if network == "tanh" else IMAGES
        if network == "tanh":
            module[4].weight.data.mul_(30)  # a softmax that jumps
        start = np.random.default_rng(4).normal(size=(1, *records.shape[1:]))
        found = explained(module, records, "deeplift", output, start)
        end, begin = logits_of(module, records), logits_of(module, start)
        chosen = end.argmax(axis=1)
        if output == "probability":
            end, begin = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in (end, begin))
        rows = np.arange(len(records))
        want = end[rows, chosen] - begin[0, chosen]
        np.testing.assert_allclose(found.reshape(len(rows), -1).sum(axis=1), want, atol=1e-6)

    @pytest.mark.parametrize("output", ["logit", "probability"])
    def test_relevance_is_conserved_without_biases(self, output):
        torch.manual_seed(0)
        layers = [nn.Linear(7, 9, bias=False), nn.Tanh(), nn.Linear(9, 3, bias=False)]
        module = nn.Sequential(*layers).double()
        z = logits_of(module, X)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        best = z.argmax(axis=1)
        want = (z if output == "logit" else p)[np.arange(len(X)), best]
        found = explained(module, X, "lrp", output).sum(axis=1)
        np.testing.assert_allclose(found, want, rtol=1e-6)

    @pytest.mark.parametrize("rule", ["gradient", "lrp", "deeplift"])
    @pytest.mark.parametrize("end", ["softmax", "log", "moved"])
    def test_a_softmax_a_flattening_and_functions_change_nothing(self, tanh, rule, end):
        for output in ("logit", "probability"):
            want = explained(tanh, X, rule, output)
            found = explained(Functional(tanh, end), X, rule, output)
            np.testing.assert_allclose(found, want, atol=1e-12)

    @pytest.mark.parametrize("rule", ["lrp", "deeplift"])
    def test_a_layer_used_twice_is_as_two_layers(self, rule):
        torch.manual_seed(0)
        shared, act = nn.Linear(7, 7).double(), nn.Tanh()
        twice = nn.Sequential(shared, act, shared, act, shared)
        apart = nn.Sequential(*[copy.deepcopy(layer) for layer in twice])
        np.testing.assert_array_equal(explained(twice, X, rule), explained(apart, X, rule))

    def test_one_logit_stands_for_two_classes(self, tanh):
        one = nn.Sequential(nn.Linear(7, 1), nn.Flatten(0)).double()
        weight, z = one[0].weight.detach().numpy(), logits_of(one, X)
        sign = np.where(z > 0, 1.0, -1.0)[:, None]
        np.testing.assert_allclose(explained(one, X), sign * weight)
        p = 1 / (1 + np.exp(-z))[:, None]
        found = explained(one, X, output="probability")
        np.testing.assert_allclose(found, sign * p * (1 - p) * weight, rtol=1e-9)

    def test_batches_and_baselines_of_each_record_are_kept_together(self, tanh, monkeypatch):
        others = np.random.default_rng(5).normal(size=X.shape)
        want = explained(tanh, X, "deeplift", baseline=others)
        many = np.tile(X, (12, 1)), np.tile(others, (12, 1))
        monkeypatch.setattr("leakscope.networks.attribution._FEATURES", 1)
        found = explained(tanh, many[0], "deeplift", baseline=many[1])
        np.testing.assert_allclose(found, np.tile(want, (12, 1)), atol=1e-12)

    def test_the_module_and_the_records_are_left_as_they_were(self, tanh):
        module = nn.Sequential(tanh, nn.Dropout(), nn.ReLU(inplace=True)).train()
        module[0].eval()
        before = copy.deepcopy(module.state_dict())
        features = X.copy()
        first = explained(module, features, "lrp")
        np.testing.assert_array_equal(first, explained(module, features, "lrp"))
        assert module.training
        assert not module[0].training
        assert all(torch.equal(before[name], now) for name, now in module.state_dict().items())
        assert all(one.grad is None and one.requires_grad for one in module.parameters())
        np.testing.assert_array_equal(features, X)


@pytest.mark.parametrize("rule", ["gradient", "lrp", "deeplift"])
class TestAnyModule:
    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_gradients_may_be_switched_off_outside(self, tanh, rule, mode):
        want = explained(tanh, X, rule)
        with mode():
            np.testing.assert_array_equal(explained(tanh, X, rule), want)
            assert not torch.is_grad_enabled()

    @pytest.mark.parametrize("outputs", [1, 3])
    def test_a_single_record_may_lose_its_row(self, tanh, rule, outputs):
        tanh[4] = nn.Linear(8, outputs).double()
        squeezed = nn.Sequential(tanh, Wrapped(torch.squeeze))
        want = explained(tanh, X, rule)
        np.testing.assert_allclose(explained(squeezed, X, rule), want, atol=1e-12)
        np.testing.assert_allclose(explained(squeezed, X[:1], rule), want[:1], atol=1e-12)

    def test_a_module_of_low_precision(self, tanh, rule):
        fine = tanh[:3]
        found = explained(copy.deepcopy(fine).bfloat16(), X, rule)
        np.testing.assert_allclose(found, explained(fine, X, rule), atol=0.02)

    def test_a_module_that_holds_no_parameters(self, tanh, rule):
        class Buffered(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("weight", tanh[0].weight.detach())

            def forward(self, x):
                return torch.tanh(x @ self.weight.T)

        want = nn.Sequential(nn.Linear(7, 9, bias=False), nn.Tanh()).double()
        want[0].weight = tanh[0].weight
        np.testing.assert_allclose(explained(Buffered(), X, rule), explained(want, X, rule))


@pytest.mark.parametrize(
    "layer",
    [
        nn.ELU(), nn.GELU(), nn.Hardtanh(), nn.LeakyReLU(), nn.Mish(), nn.ReLU6(), nn.SELU(),
        nn.SiLU(), nn.Sigmoid(), nn.Softplus(), nn.Hardswish(),
    ],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_contributions_through_every_activation_add_up(layer):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(7, 9), layer, nn.Linear(9, 3)).double()
    z, start = logits_of(module, X), logits_of(module, np.zeros((1, 7)))
    best = z.argmax(axis=1)
    want = z[np.arange(len(X)), best] - start[0, best]
    found = explained(module, X, "deeplift")
    np.testing.assert_allclose(found.sum(axis=1), want, atol=1e-10)


def test_residual_connections_conserve_relevance():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.Linear(7, 7, bias=False), nn.Linear(7, 3, bias=False)

        def forward(self, x):
            return self.out((x + torch.tanh(self.inner(x))) * 0.5)

    torch.manual_seed(0)
    module = Residual().double()
    want = logits_of(module, X).max(axis=1)
    np.testing.assert_allclose(explained(module, X, "lrp").sum(axis=1), want, rtol=1e-6)
    np.testing.assert_allclose(explained(module, X, "deeplift").sum(axis=1), want, rtol=1e-9)


def test_a_record_that_equals_the_baseline_has_the_slope_of_the_tangent(tanh):
    near = np.full((1, 7), 1e-9)
    gradient = explained(tanh[:3], near)
    found = explained(tanh[:3], near, "deeplift")
    np.testing.assert_allclose(found, gradient * near, rtol=1e-6)


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Calls(nn.Module):
    """A linear layer after a call that is chosen."""

    def __init__(self, call):
        super().__init__()
        self.call, self.out = call, nn.Linear(7, 3).double()

    def forward(self, x):
        return self.out(self.call(x))


class Product(nn.Module):
    def forward(self, x):
        return x * x


class TestRefusals:
    @pytest.mark.parametrize("rule", ["lrp", "deeplift"])
    def test_a_call_without_a_rule_is_named_with_its_layer(self, rule):
        with pytest.raises(ModelError, match=rf"the layer 'call' \(Product\).*{rule}.* call mul"):
            explained(Calls(Product()), X, rule)
        assert np.isfinite(explained(Calls(Product()), X)).all()

    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (lambda x: 1 / (x + 9), "reciprocal|__rtruediv__|div"),
            (lambda x: x.sort(dim=1).values, "sort"),
            (lambda x: functional.batch_norm(x, None, None, training=True), "batch_norm"),
        ],
    )
    def test_what_is_not_linear_is_not_taken_for_it(self, call, name):
        with pytest.raises(ModelError, match=f"it fails in its forward: .*({name})"):
            explained(Calls(call), X, "lrp")

    def test_functions_that_cannot_be_seen_into(self):
        with pytest.raises(ModelError, match="calls Custom in a way that lrp cannot see"):
            explained(Calls(Custom.apply), X, "lrp")
        assert np.isfinite(explained(Calls(Custom.apply), X)).all()

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_compiled_layers(self, tanh):
        traced = torch.jit.trace(tanh, torch.tensor(X))
        with pytest.raises(ModelError, match=r"layer '0'.* is compiled.* before torch.jit"):
            explained(nn.Sequential(traced), X, "deeplift")
        with pytest.raises(ModelError, match=r"The module itself .* is compiled"):
            explained(traced, X, "lrp")
        np.testing.assert_allclose(explained(traced, X), explained(tanh, X), atol=1e-12)

    @pytest.mark.slow
    def test_layers_that_torch_would_compile(self, tanh):
        compiled = nn.Sequential(tanh[:2], torch.compile(tanh[2:], backend="eager"))
        with pytest.raises(ModelError, match=r"layer '1' .* is compiled.* before torch.compile"):
            explained(compiled, X, "lrp")
        tanh[2].compile(backend="eager")
        with pytest.raises(ModelError, match=r"layer '2' \(Linear\) is compiled"):
            explained(tanh, X, "deeplift")

    def test_a_layer_that_fails_is_named(self, tanh):
        broken = nn.Sequential(tanh, nn.Linear(4, 2).double())
        for rule in ("gradient", "lrp"):
            with pytest.raises(ModelError, match=r"fails in the layer '1' \(Linear\): mat1"):
                explained(broken, X, rule)

    def test_a_layer_that_is_not_a_number_forwards(self, tanh):
        tanh[2].weight.data[0] = np.nan
        with pytest.raises(ModelError, match=r"record 0 .*the layer '2' \(Linear\)"):
            explained(tanh, X)

    def test_a_layer_that_is_not_a_number_backwards(self):
        class Root(nn.Module):
            def forward(self, x):
                return x.clamp(min=0).sqrt()

        module = nn.Sequential(nn.Identity(), Root(), nn.Linear(7, 3)).double()
        with pytest.raises(ModelError, match=r"the gradient of the layer '1' \(Root\) is not"):
            explained(module, np.zeros((2, 7)))

    def test_a_gradient_that_is_lost_before_every_layer(self):
        module = Calls(lambda x: x.abs().sqrt() * 0 + 1.0)
        with pytest.raises(ModelError, match=r"gradient of the layer 'out' \(Linear\) is not"):
            explained(module, np.zeros((2, 7)))

    def test_a_gradient_that_is_lost_after_every_layer(self):
        module = nn.Sequential(Wrapped(lambda x: x[:, :3] * 0.0))
        module.forward = lambda x: module[0](x).sqrt()
        with pytest.raises(ModelError, match="as its gradient is not"):
            explained(module, X)

    def test_large_explanations_are_not_refused(self):
        module = nn.Linear(7, 2, bias=False).double()
        module.weight.data[:] = 1e308
        assert (explained(module, np.zeros((2, 7))) == 1e308).all()

    def test_a_module_without_a_way_back(self):
        for module in (Calls(lambda x: x.detach()), Calls(torch.ones_like)):
            for frozen in (False, True):
                module.requires_grad_(not frozen)
                with pytest.raises(ModelError, match="what it answers does not depend on them"):
                    explained(module, X)

    def test_a_way_back_that_torch_refuses(self):
        with pytest.raises(ModelError, match="followed back to its features: one of the variables"):
            explained(Calls(lambda x: (2 * x).tanh().mul_(2)), X)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_gradient_that_is_lost_beside_other_layers(self):
        class Root(nn.Module):
            def forward(self, x):
                return x.abs().sqrt()

        class Beside(nn.Module):
            """Layers whose answers are several tensors, or are not used."""

            def __init__(self):
                super().__init__()
                self.recurrent, self.unused = nn.LSTM(7, 7, batch_first=True), nn.Linear(7, 2)
                self.root, self.out = Root(), nn.Linear(7, 3)

            def forward(self, x):
                self.unused(x)
                self.recurrent(x[:, None])
                return self.out(self.root(x))

        with pytest.raises(ModelError, match=r"the gradient of the layer 'root' \(Root\) is not"):
            explained(Beside().double(), np.zeros((2, 7)))
        traced = torch.jit.trace(nn.Sequential(Root(), nn.Linear(7, 3)), torch.zeros(2, 7))
        with pytest.raises(ModelError, match="as its gradient is not"):
            explained(traced, np.zeros((2, 7)))

    @pytest.mark.parametrize(
        ("answer", "got"), [(lambda x: [x], "list"), (lambda x: x[:3], r"\(3, 7\)")]
    )
    def test_answers_that_are_not_rows(self, answer, got):
        module = Calls(lambda x: x)
        module.out = answer if isinstance(answer, nn.Module) else Wrapped(answer)
        with pytest.raises(ModelError, match=f"one row per record.*{got}"):
            explained(module, X)

    def test_probabilities_of_no_known_logits(self, tanh):
        module = nn.Sequential(tanh, Wrapped(lambda z: z.exp() / z.exp().sum(1, keepdim=True)))
        with pytest.raises(ModelError, match="whose logits cannot be found"):
            explained(module, X)


class Wrapped(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


def test_numbers_are_taken_as_they_are(tanh):
    module = nn.Sequential(nn.Linear(7, 1), nn.Sigmoid()).double()
    found = follow_back(module, X, partial(weigh, task="regression"), kind="logits")
    p = logits_of(module, X)
    np.testing.assert_allclose(found, p * (1 - p) * module[0].weight.detach().numpy(), rtol=1e-9)


def test_the_number_of_inputs(tanh, images):
    assert inputs_of(tanh) == 7
    assert inputs_of(images) is None
    assert inputs_of(nn.Tanh()) is None
