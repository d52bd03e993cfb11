from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import leakscope.exact.influence as module
from leakscope.errors import InputError
from leakscope.exact import LeaveOneOut, leave_one_out

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
QUERIES = RNG.normal(size=(7, 3)) * 2
LABELS = {
    "binomial": np.array(["no", "yes"])[(X[:, 0] + RNG.normal(size=24) > 0).astype(int)],
    "multinomial": np.arange(24) % 3 + 10,
    "gaussian": X[:, 0] + RNG.normal(size=24),
}


@pytest.fixture(params=LABELS)
def found(request: pytest.FixtureRequest) -> LeaveOneOut:
    return leave_one_out(X, LABELS[request.param])


def outputs(theta: np.ndarray, queries: np.ndarray, family: str) -> np.ndarray:
    """Probabilities (q, C) of one model, or predictions (q,)."""
    logits = queries @ theta[..., :-1].T + theta[..., -1]
    if family == "gaussian":
        return logits
    return softmax(np.column_stack([0 * logits, logits]) if logits.ndim == 1 else logits, axis=1)


def plain_influence(
    found: LeaveOneOut, queries: np.ndarray, labels: np.ndarray, measure: str
) -> np.ndarray:
    """The difference of two losses, for each query and each record."""

    def losses(theta: np.ndarray) -> np.ndarray:
        answers = outputs(theta, queries, found.family)
        if found.classes is None:
            return (answers - labels) ** 2
        own = answers[np.arange(len(queries)), np.searchsorted(found.classes, labels)]
        return 1 - own if measure == "probability" else -np.log(own)

    return np.stack([losses(theta) - losses(found.theta) for theta in found.theta_without], axis=1)


def measures(found: LeaveOneOut) -> list[str]:
    return ["squared-error"] if found.classes is None else ["probability", "log-loss"]


def test_predictions_are_those_of_the_model_of_all(found: LeaveOneOut) -> None:
    answers = outputs(found.theta, QUERIES, found.family)
    if found.classes is None:
        np.testing.assert_allclose(found.predict(QUERIES), answers)
        with pytest.raises(InputError, match="ridge regression has no probabilities; use predict"):
            found.predict_proba(QUERIES)
    else:
        np.testing.assert_allclose(found.predict_proba(QUERIES), answers, rtol=1e-12)
        assert (found.predict(QUERIES) == found.classes[answers.argmax(axis=1)]).all()


def test_influence_is_the_difference_of_two_losses(found: LeaveOneOut) -> None:
    given = LABELS[found.family][:7]
    for measure in measures(found):
        for labels in (None, given):
            meant = found.predict(QUERIES) if labels is None else labels
            expected = plain_influence(found, QUERIES, meant, measure)
            values = found.influence(QUERIES, labels, measure)
            np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-13)
            absolute = found.influence(QUERIES, labels, measure, signed=False)
            assert (absolute == np.abs(values)).all()
    assert (found.influence(QUERIES) == found.influence(QUERIES, None, measures(found)[0])).all()


def test_an_explanation_is_the_first_k_of_a_sort(found: LeaveOneOut) -> None:
    for measure in measures(found):
        influence = found.influence(QUERIES, measure=measure)
        indices, values = found.explain(QUERIES, 5, measure)
        assert (indices == np.argsort(-np.abs(influence), axis=1)[:, :5]).all()
        np.testing.assert_allclose(values, np.take_along_axis(influence, indices, 1), rtol=1e-12)
        every, _ = found.explain(QUERIES, len(found), measure)
        assert (np.sort(every, axis=1) == np.arange(24)).all()


def test_self_ranks_are_places_in_the_explanations(found: LeaveOneOut) -> None:
    for measure in measures(found):
        for labels in (None, LABELS[found.family]):
            indices, _ = found.explain(X, 24, measure, labels)
            places = [row.tolist().index(record) + 1 for record, row in enumerate(indices)]
            assert found.self_ranks(measure, labels).tolist() == places


def test_chunks_change_nothing(found: LeaveOneOut, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = found.influence(QUERIES), found.explain(QUERIES, 3), found.self_ranks()
    monkeypatch.setattr(module, "_NUMBERS", 150)
    parts = list(found.influence_chunks(QUERIES))
    assert len(parts) >= 2
    for rows, part in parts:
        np.testing.assert_allclose(part, whole[0][rows], rtol=1e-12, atol=1e-15)
    assert (found.explain(QUERIES, 3)[0] == whole[1][0]).all()
    assert (found.self_ranks() == whole[2]).all()


def test_no_queries_have_no_influences(found: LeaveOneOut) -> None:
    none = np.empty((0, 3))
    assert found.influence(none).shape == (0, 24)
    indices, values = found.explain(none, 2)
    assert indices.shape == values.shape == (0, 2)
    assert indices.dtype == np.intp


def test_saturated_queries_are_explained_as_less_saturated_ones() -> None:
    """Far out, the odds of every label are 0 or ∞ in floating point; e^−Δ still differs."""
    found = leave_one_out(X, LABELS["binomial"])
    direction = found.theta[:-1] / np.linalg.norm(found.theta[:-1])
    ahead = found.theta_without[:, :-1] @ direction / (found.theta[:-1] @ direction) - 1
    query = direction[None] * 1e4 / (found.theta[:-1] @ direction)
    assert (found.influence(query) == 0).all()
    indices, values = found.explain(query, 24)
    assert (values == 0).all()
    # Logits that shrink, here by tens to thousands, come first: those that shrink most.
    shrinking = np.flatnonzero(ahead < -1e-3)
    order = shrinking[np.argsort(ahead[shrinking])]
    assert len(order) > 5
    assert indices[0, : len(order)].tolist() == order.tolist()


def test_odds_of_one_class_against_others_survive_saturation() -> None:
    """Classes of a multinomial model far out: changes of log-odds are finite and ordered."""
    found = leave_one_out(X, LABELS["multinomial"])
    far = QUERIES * 3e4
    _, values = found.explain(far, 24, "log-loss")
    assert np.isfinite(values).all()
    influence = found.influence(far, y=np.full(7, 10), measure="log-loss")
    assert np.isfinite(influence).all()
    # Of the least likely label, the loss is a difference of logits, and so is its change.
    least = found.classes[found.predict_proba(QUERIES).argmin(axis=1)]  # type: ignore[index]
    best = found.predict_proba(QUERIES).argmax(axis=1)
    worst = np.searchsorted(found.classes, least)  # type: ignore[arg-type]
    rows = np.column_stack([far, np.ones(7)])
    for q in range(7):
        gaps = found.theta_without @ rows[q]
        before = found.theta @ rows[q]
        expected = (gaps.max(axis=1) - gaps[:, worst[q]]) - (before[best[q]] - before[worst[q]])
        values = found.influence(far[[q]], least[[q]], "log-loss")[0]
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", LABELS)
def test_twins_have_the_same_influence_and_are_ordered_by_number(family: str) -> None:
    rng = np.random.default_rng(3)
    many, width = rng.normal(size=(700, 30)), 700
    labels = np.arange(700) % 3 if family == "multinomial" else np.arange(700) % 2
    twins = leave_one_out(
        np.vstack([many, many]), np.tile(labels, 2) + 0.5 * (family == "gaussian"), 1.0, family
    )
    assert (twins.theta_without[:width] == twins.theta_without[width:]).all()
    assert (twins.alike == np.tile(np.arange(width), 2)).all()
    influence = twins.influence(many[:5])
    assert (influence[:, :width] == influence[:, width:]).all()
    indices, _ = twins.explain(many[:5], 2 * width)
    places = np.argsort(indices, axis=1)
    assert (places[:, :width] + 1 == places[:, width:]).all()
    ranks = twins.self_ranks()
    assert (ranks[:width] + 1 == ranks[width:]).all()


def test_what_is_asked_is_checked(found: LeaveOneOut) -> None:
    with pytest.raises(InputError, match=r"shape \(n, 3\), got \(7, 2\)"):
        found.predict(QUERIES[:, :2])
    with pytest.raises(InputError, match="k must be a whole number from 1 to 24, got 25"):
        found.explain(QUERIES, 25)
    with pytest.raises(InputError, match=r"one label for each of the 7 queries, got .* \(3,\)"):
        found.influence(QUERIES, LABELS[found.family][:3])
    wrong = "probability" if found.classes is None else "squared-error"
    with pytest.raises(InputError, match=f"measure cannot be '{wrong}'"):
        found.explain(QUERIES, 1, wrong)
    if found.classes is not None:
        strange = LABELS[found.family][:7].copy()
        strange[2] = "zzz" if found.family == "binomial" else 99
        with pytest.raises(InputError, match=f"label {strange[2]} of query 2 is none of the model"):
            found.influence(QUERIES, strange)


def test_changes_are_those_of_the_log_odds() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] + rng.normal(size=30) > 0).astype(int)
    found = leave_one_out(X, y)
    expected = (found.theta_without - found.theta) @ np.column_stack([X[:3], np.ones(3)]).T
    np.testing.assert_allclose(found.changes(X[:3], np.ones(3, int)), expected.T, atol=1e-12)
    np.testing.assert_allclose(found.changes(X[:3], np.zeros(3, int)), -expected.T, atol=1e-12)
