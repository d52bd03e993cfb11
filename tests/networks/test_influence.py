from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from torch import nn
from torch.nn import functional

from leakscope.errors import InputError, MissingExtraError
from leakscope.exact import koh_liang, leave_one_out
from leakscope.networks.influence import module_influence

pytest.importorskip("captum.influence")

RNG = np.random.default_rng(0)
X, QUERIES = RNG.normal(size=(60, 3)), RNG.normal(size=(9, 3))
SIGNAL = X @ [1.0, -1.0, 0.5] + RNG.normal(size=60)
LABELS = np.where(SIGNAL > 0, "yes", "no")
L2 = 1.0


def linear(weights, bias):
    module = nn.Linear(np.shape(weights)[1], np.shape(weights)[0]).double()
    with torch.no_grad():
        module.weight[:] = torch.as_tensor(np.array(weights))
        module.bias[:] = torch.as_tensor(np.array(bias))
    return module


def influences(found, queries=QUERIES):
    return np.concatenate([part for _, part in found.influence_chunks(queries)])


def optimum(labels):
    return LogisticRegression(C=1 / L2, solver="newton-cholesky", tol=1e-12).fit(X, labels)


def with_ones(queries):
    return np.column_stack([queries, np.ones(len(queries))])


@pytest.fixture(scope="module")
def binary():
    fitted = optimum(LABELS)
    return module_influence(linear(fitted.coef_, fitted.intercept_), X, LABELS, l2=L2)


def test_one_logit_gives_the_first_order_of_the_exact_influence(binary):
    first = koh_liang(X, LABELS, L2)
    p, chosen = first.predict_proba(QUERIES), first.predict_proba(QUERIES).argmax(axis=1)
    slope = np.where(chosen == 1, 1.0, -1.0) * p[:, 0] * p[:, 1]
    moved = with_ones(QUERIES) @ (first.theta_without - first.theta).T
    np.testing.assert_allclose(influences(binary), -slope[:, None] * moved, atol=1e-10)


def test_it_orders_records_as_leaving_them_out_does(binary):
    exact = leave_one_out(X, LABELS, L2).influence(QUERIES)
    found = influences(binary)
    assert min(spearmanr(*rows).statistic for rows in zip(found, exact, strict=True)) > 0.99


def test_predictions_and_explanations(binary):
    np.testing.assert_allclose(
        binary.predict(QUERIES), optimum(LABELS).predict_proba(QUERIES)[:, 1], atol=1e-8
    )
    positions, values = binary.explain(QUERIES, 4)
    found = influences(binary)
    for row, (shown, own) in enumerate(zip(positions, values, strict=True)):
        assert sorted(np.abs(found[row]))[::-1][:4] == pytest.approx(list(np.abs(own)))
        np.testing.assert_array_equal(found[row, shown], own)
    none, nothing = binary.explain(QUERIES[:0], 2)
    assert none.shape == nothing.shape == (0, 2)
    np.testing.assert_array_equal(binary.y, LABELS)


def test_queries_come_in_parts(binary, monkeypatch):
    want = influences(binary)
    monkeypatch.setattr("leakscope.networks.influence._BATCH", 4)
    parts = [rows for rows, _ in binary.influence_chunks(QUERIES)]
    assert parts == [slice(0, 4), slice(4, 8), slice(8, 9)]
    np.testing.assert_allclose(influences(binary), want, atol=1e-14)


def test_several_classes_and_the_log_loss():
    labels = np.digitize(SIGNAL, [-0.5, 0.7])
    fitted, first = optimum(labels), koh_liang(X, labels, L2)
    module = linear(fitted.coef_, fitted.intercept_)
    found = module_influence(module, X, labels, l2=L2, measure="log-loss")
    p = first.predict_proba(QUERIES)
    np.testing.assert_allclose(found.predict(QUERIES), p, atol=1e-7)
    own = np.eye(3)[p.argmax(axis=1)]
    moved = np.einsum("qd,ncd->qnc", with_ones(QUERIES), first.theta_without - first.theta)
    want = np.einsum("qc,qnc->qn", p - own, moved)
    np.testing.assert_allclose(influences(found), want, atol=1e-7)


def test_numbers():
    fitted = Ridge(alpha=L2).fit(X, SIGNAL)
    module = linear(fitted.coef_[None], [fitted.intercept_])
    found = module_influence(module, X, SIGNAL, l2=L2, task="regression")
    np.testing.assert_allclose(found.predict(QUERIES), fitted.predict(QUERIES))
    want = koh_liang(X, SIGNAL, L2, "gaussian").influence(QUERIES)
    np.testing.assert_allclose(influences(found), want, rtol=1e-6, atol=1e-14)


def trained_network():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    features, y = torch.tensor(X), torch.tensor((LABELS == "yes").astype(int))
    optimizer = torch.optim.LBFGS(module.parameters(), max_iter=300, tolerance_grad=1e-9)

    def loss():
        optimizer.zero_grad()
        weights = sum(one.square().sum() for one in module.parameters() if one.ndim > 1)
        total = functional.cross_entropy(module(features), y, reduction="sum") + L2 / 2 * weights
        total.backward()
        return total

    optimizer.step(loss)
    return module


def test_the_largest_directions_of_a_network_come_near_to_all_of_them():
    module = trained_network()
    options = {"l2": L2, "damping": 0.1}
    whole = influences(module_influence(module, X, LABELS, **options))
    near = [
        influences(
            module_influence(module, X, LABELS, curvature="arnoldi", rank=rank, **options)
        ).ravel()
        for rank in (2, 26)
    ]
    few, many = (np.corrcoef(whole.ravel(), one)[0, 1] for one in near)
    assert few < many
    assert many > 0.98
    assert not module.training or all(one.requires_grad for one in module.parameters())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"y": LABELS[:-1]}, "one label for each of 60 records"),
        ({"module": linear(np.ones((4, 3)), np.zeros(4))}, "4 outputs where the labels make 2"),
        ({"curvature": "fisher"}, "curvature"),
        ({"measure": "squared-error"}, "measure"),
        ({"task": "regression", "measure": "log-loss", "y": SIGNAL}, "measure"),
        ({"l2": -1.0}, "l2"),
        ({"damping": -1.0}, "damping"),
    ],
)
def test_what_does_not_fit_is_refused(change, match):
    options = {"module": linear(np.ones((2, 3)), np.zeros(2)), "X": X, "y": LABELS} | change
    with pytest.raises(InputError, match=match):
        module_influence(**options)


def test_k_must_be_a_number_of_records(binary):
    with pytest.raises(InputError, match="k must be a whole number from 1 to 60"):
        binary.explain(QUERIES, 61)


def test_without_captum_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.influence._core.influence_function", None)
    with pytest.raises(MissingExtraError, match="influence of records on a torch module"):
        module_influence(linear(np.ones((2, 3)), np.zeros(2)), X, LABELS)
