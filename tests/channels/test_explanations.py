from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from leakscope.channels.explanations import (
    METHODS,
    DeepLift,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    Relevance,
    SmoothGrad,
)
from leakscope.errors import InputError, NotApplicableError
from leakscope.models import as_model
from leakscope.records import Records

RNG = np.random.default_rng(0)
X = RNG.normal(2.0, 3.0, size=(40, 5))
LABELS = np.digitize(X[:, 0] - X[:, 1] + RNG.normal(size=40), [-2.0, 2.0])
RECORDS = Records(X, LABELS)
BINARY = Records(X, (LABELS > 0).astype(int))


def fitted(records=RECORDS, *before):
    return make_pipeline(*before, LogisticRegression()).fit(records.X, records.y)


def softmax(z):
    odds = np.exp(z - z.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def torch_model():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    return as_model(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).double())


def slopes_by_differences(answer, X, step=1e-5):
    """The derivative of a function (n,) of records by each feature, by small differences."""
    columns = []
    for feature in range(X.shape[1]):
        up, down = X.copy(), X.copy()
        up[:, feature] += step
        down[:, feature] -= step
        columns.append((answer(up) - answer(down)) / (2 * step))
    return np.column_stack(columns)


class TestLinearModels:
    @pytest.mark.parametrize("before", [(), (StandardScaler(),), (StandardScaler(), PCA(3))])
    @pytest.mark.parametrize("output", ["logit", "probability"])
    @pytest.mark.parametrize("records", [RECORDS, BINARY], ids=["three", "two"])
    def test_the_gradient_is_the_derivative(self, before, output, records):
        estimator = fitted(records, *before)
        best = estimator.predict_proba(X).argmax(axis=1)
        rows = np.arange(len(X))

        def answer(Z):
            if output == "probability":
                return estimator.predict_proba(Z)[rows, best]
            logits = estimator.decision_function(Z)
            return logits[rows, best] if logits.ndim == 2 else np.where(best == 1, logits, -logits)

        found = Gradient(output=output).observe(as_model(estimator), records)
        np.testing.assert_allclose(found, slopes_by_differences(answer, X), atol=1e-6)

    def test_contributions_and_relevance_of_a_linear_model(self):
        estimator = LogisticRegression().fit(X, LABELS)
        model, best = as_model(estimator), estimator.predict(X)
        shares = X * estimator.coef_[best]
        np.testing.assert_allclose(GradientTimesInput().observe(model, RECORDS), shares)
        np.testing.assert_allclose(DeepLift().observe(model, RECORDS), shares)
        np.testing.assert_allclose(IntegratedGradients().observe(model, RECORDS), shares)
        z = estimator.decision_function(X)[np.arange(40), best][:, None]
        found = Relevance(epsilon=0.5).observe(model, RECORDS)
        np.testing.assert_allclose(found, shares * z / (z + np.sign(z) * 0.5))

    def test_numbers(self):
        records = Records(X, X @ np.arange(5.0) + RNG.normal(size=40))
        estimator = Ridge().fit(records.X, records.y)
        model = as_model(estimator)
        for output in ("logit", "probability"):
            found = Gradient(output=output).observe(model, records)
            np.testing.assert_allclose(found, np.tile(estimator.coef_, (40, 1)))
        found = IntegratedGradients(baseline="mean").observe(model, records)
        np.testing.assert_allclose(found, (X - X.mean(axis=0)) * estimator.coef_)

    def test_a_machine_without_probabilities_has_logits(self):
        estimator = LinearSVC().fit(X, BINARY.y)
        found = Gradient().observe(as_model(estimator), BINARY)
        sign = np.where(estimator.predict(X) == 1, 1.0, -1.0)[:, None]
        np.testing.assert_allclose(found, sign * estimator.coef_)
        with pytest.raises(NotApplicableError, match="output='logit'"):
            Gradient(output="probability").observe(as_model(estimator), BINARY)

    def test_what_cannot_be_followed_back_is_refused(self):
        forest = as_model(RandomForestClassifier(3).fit(X, LABELS))
        for model in (forest, as_model(lambda Z: np.tile([0.5, 0.5], (len(Z), 1)))):
            with pytest.raises(NotApplicableError, match="lime, kernel-shap or occlusion"):
                Gradient().observe(model, BINARY)


@pytest.mark.parametrize("output", ["logit", "probability"])
@pytest.mark.parametrize("baseline", ["zero", "mean"])
@pytest.mark.parametrize("kind", [IntegratedGradients, DeepLift])
@pytest.mark.parametrize("of", ["torch", "linear"])
def test_completeness(kind, baseline, output, of):
    model = torch_model() if of == "torch" else as_model(fitted(RECORDS, StandardScaler()))
    found = kind(output=output, baseline=baseline).observe(model, RECORDS)
    start = np.zeros((1, 5)) if baseline == "zero" else X.mean(axis=0, keepdims=True)

    def logits(Z):
        if of == "linear":
            return model.estimator.decision_function(Z)
        import torch

        return model.module(torch.tensor(Z)).detach().numpy()

    end, begin = logits(X), logits(start)
    best = end.argmax(axis=1)
    if output == "probability":
        end, begin = softmax(end), softmax(begin)
    want = end[np.arange(40), best] - begin[0, best]
    np.testing.assert_allclose(found.sum(axis=1), want, atol=1e-6)


def test_integrated_gradients_are_captums():
    model = torch_model()
    attr = pytest.importorskip("captum.attr")
    import torch

    inputs = torch.tensor(X, requires_grad=True)
    target = model.module(inputs).argmax(dim=1)
    theirs = attr.IntegratedGradients(model.module).attribute(inputs, target=target, n_steps=20)
    found = IntegratedGradients(steps=20).observe(model, RECORDS)
    np.testing.assert_allclose(found, theirs.detach().numpy(), atol=1e-8)


def test_steps_are_asked_for_together_or_apart(monkeypatch):
    model = torch_model()
    want = IntegratedGradients(steps=7).observe(model, RECORDS)
    monkeypatch.setattr("leakscope.channels.explanations._ROWS", 1)
    np.testing.assert_allclose(
        IntegratedGradients(steps=7).observe(model, RECORDS), want, atol=1e-12
    )


class TestSmoothGrad:
    @pytest.mark.parametrize("of", sorted(METHODS))
    @pytest.mark.parametrize("output", ["logit", "probability"])
    def test_without_noise_it_is_the_explanation(self, of, output):
        model = torch_model()
        smooth = SmoothGrad(of=of, sigma=1e-9, samples=3, output=output).observe(model, RECORDS)
        plain = METHODS[of](output=output).observe(model, RECORDS)
        np.testing.assert_allclose(smooth, plain, atol=1e-6)

    def test_it_is_the_average_over_noise_of_the_class_of_the_record(self):
        estimator = LogisticRegression().fit(X, LABELS)
        model = as_model(estimator)
        found = SmoothGrad(sigma=5.0, samples=4, seed=9, output="probability").observe(
            model, RECORDS
        )
        for row in (0, 17, 39):
            key = int(RECORDS.keys()[row])
            noise = np.random.default_rng([9, key]).normal(0, 5.0, (4, 5))
            p = estimator.predict_proba(X[row] + noise)
            best = estimator.predict(X[row : row + 1])[0]
            slopes = p[:, [best]] * (estimator.coef_[best] - p @ estimator.coef_)
            np.testing.assert_allclose(found[row], slopes.mean(axis=0), atol=1e-12)

    def test_the_order_of_records_and_the_parts_change_nothing(self, monkeypatch):
        model, order = torch_model(), RNG.permutation(40)
        channel = SmoothGrad(samples=6)
        want = channel.observe(model, RECORDS)
        monkeypatch.setattr("leakscope.channels.explanations._ROWS", 14)
        found = channel.observe(model, RECORDS.take(order))
        np.testing.assert_allclose(found, want[order], atol=1e-12)

    def test_numbers_have_no_class(self):
        records = Records(X, X[:, 0])
        model = as_model(Ridge().fit(X, X[:, 0]))
        found = SmoothGrad(of="integrated-gradients", samples=2).observe(model, records)
        assert found.shape == (40, 5)

    @pytest.mark.parametrize(
        "options", [{"of": "smoothgrad"}, {"sigma": -1.0}, {"samples": 0}], ids=str
    )
    def test_options_are_checked(self, options):
        with pytest.raises(InputError, match=next(iter(options))):
            SmoothGrad(**options).observe(torch_model(), RECORDS)


def test_options_and_classes_are_checked():
    model = torch_model()
    with pytest.raises(InputError, match="output"):
        Gradient(output="odds").observe(model, RECORDS)
    with pytest.raises(InputError, match="epsilon"):
        Relevance(epsilon=-1.0).observe(model, RECORDS)
    start = np.zeros((1, 5))
    for target, match in (
        (np.full(40, 3), "run from 3 to 3 where there are 3"),
        (np.zeros(40), "one class number for each of 40"),
    ):
        with pytest.raises(InputError, match=match):
            Gradient().explain(model, X, start, target)


def test_widths():
    assert Gradient().width(torch_model()) == 5
    assert Gradient().width(as_model(fitted(RECORDS, StandardScaler()))) == 5
