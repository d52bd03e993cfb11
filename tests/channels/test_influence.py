from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakscope.channels import influence
from leakscope.channels.influence import (
    FARTHEST,
    ExactInfluence,
    NoInfluence,
    RecordExplanations,
    explained,
    what_is_shown,
    with_records,
)
from leakscope.errors import InputError, ModelError, NotApplicableError
from leakscope.exact import leave_one_out
from leakscope.models import as_model
from leakscope.records import Records

EXACT = {"solver": "newton-cholesky", "tol": 1e-10}


def people(n=80, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1, 1, 1, 1, 5, 0.1]
    signal = X[:, 0] + rng.normal(size=n)
    return Records(X, np.searchsorted(np.quantile(signal, np.arange(1, classes) / classes), signal))


def fitted(estimator, records):
    return explained(as_model(estimator.fit(records.X, records.y)), records)


@pytest.fixture(scope="module")
def members():
    return people()


@pytest.fixture(scope="module")
def model(members):
    return fitted(LogisticRegression(**EXACT), members)


def test_the_distances_are_those_of_the_records_that_explain(model, members):
    others = people(30, 1)
    seen = RecordExplanations(k=3).observe(model, others)
    positions, values = leave_one_out(members.X, members.y).explain(others.X, 3)
    scale = members.X.std(axis=0)
    for row, (shown, value) in enumerate(zip(positions, values, strict=True)):
        gaps = [np.linalg.norm((members.X[one] - others.X[row]) / scale) for one in shown]
        np.testing.assert_allclose(seen[row], [min(gaps), *gaps, *value], rtol=1e-9, atol=1e-12)


def test_those_who_are_shown_to_themselves_are_those_of_small_rank(model, members):
    ranks = leave_one_out(members.X, members.y).self_ranks()
    for k in (1, 5, 10):
        seen = RecordExplanations(k=k).observe(model, members)
        np.testing.assert_array_equal(seen[:, 0] == 0, ranks <= k)
        found = np.flatnonzero(ranks <= k)
        assert (seen[found, ranks[found]] == 0).all()  # and at that very place


@pytest.mark.parametrize(("show", "width"), [("signed", 7), ("absolute", 7), ("records", 4)])
def test_what_is_told_of_influence(model, members, show, width):
    channel = RecordExplanations(k=3, show=show)
    seen, signed = channel.observe(model, members), RecordExplanations(k=3).observe(model, members)
    assert seen.shape == (80, width) == (80, channel.width(model))
    np.testing.assert_array_equal(seen[:, :4], signed[:, :4])
    told = {"signed": signed[:, 4:], "absolute": np.abs(signed[:, 4:]), "records": seen[:, 4:]}
    np.testing.assert_array_equal(seen[:, 4:], told[show])
    assert (signed[:, 4:] < 0).any()


def test_influence_may_be_that_on_the_log_loss(model, members):
    seen = RecordExplanations(measure="log-loss").observe(model, members)
    shown = leave_one_out(members.X, members.y).explain(members.X, 5, "log-loss")
    np.testing.assert_allclose(seen[:, 6:], shown[1], rtol=1e-9)
    with pytest.raises(InputError, match="measure"):
        RecordExplanations(measure="squared-error").observe(model, members)


def test_an_explainer_of_another_kind_has_its_own_measure(model):
    model = influence.Explained(model, NoInfluence(model.explainer), model.prepared)
    with pytest.raises(ModelError, match="leave out measure='log-loss'"):
        RecordExplanations(measure="log-loss").explainer_of(model)


def test_where_nothing_is_shown_all_is_far(model, members):
    seen = what_is_shown(NoInfluence(model.explainer), members.X, 2, "signed")
    np.testing.assert_array_equal(seen, np.tile([FARTHEST] * 3 + [0, 0], (80, 1)))


def test_where_less_is_shown_the_nearest_of_those_counts(model, members):
    class Half:
        X = model.explainer.X

        def explain(self, X, k):
            positions, values = model.explainer.explain(X, k)
            positions[:, 1:] = -1
            return positions, values

    seen = what_is_shown(Half(), members.X, 3, "signed")
    whole = what_is_shown(model.explainer, members.X, 3, "signed")
    np.testing.assert_array_equal(seen[:, [0, 1, 4]], whole[:, [1, 1, 4]])
    assert (seen[:, [2, 3]] == FARTHEST).all()
    assert (seen[:, [5, 6]] == 0).all()


def test_distances_in_parts_are_the_same_and_none_is_beyond_the_farthest(
    model, members, monkeypatch
):
    far = Records(members.X * 1e6, members.y)
    whole = RecordExplanations().observe(model, members)
    assert (RecordExplanations().observe(model, far)[:, 0] == FARTHEST).all()
    monkeypatch.setattr(influence, "_NUMBERS", 70)
    np.testing.assert_array_equal(RecordExplanations().observe(model, members), whole)


def test_a_feature_that_never_varies_is_compared_as_it_is():
    records = people()
    X = records.X.copy()
    X[:, 5] = 2.0
    model = fitted(LogisticRegression(**EXACT), Records(X, records.y))
    query = X[:1] + np.array([0, 0, 0, 0, 0, 3.0])
    seen = what_is_shown(model.explainer, query, 80, "records")
    assert seen[0, 0] == 3.0


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        (RecordExplanations(k=0), "The option k must be a whole number"),
        (RecordExplanations(k=81), "The option k must be a whole number from 1 to 80"),
        (RecordExplanations(show="all"), "The option show cannot be 'all'"),
    ],
)
def test_options_that_make_no_sense_are_refused(model, members, channel, message):
    with pytest.raises(InputError, match=message):
        channel.observe(model, members)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_explainer_predicts_as_the_model(classes):
    records = people(classes=classes)
    estimator = LogisticRegression(**EXACT).fit(records.X, records.y)
    explainer = explained(as_model(estimator), records).explainer
    expected = estimator.predict_proba(records.X)
    expected = expected[:, 1] if classes == 2 else expected
    np.testing.assert_allclose(explainer.predict(records.X), expected, atol=1e-9)
    np.testing.assert_array_equal(explainer.y, records.y)
    (rows, values), *_ = explainer.influence_chunks(records.X[:2])
    refit = LogisticRegression(**EXACT).fit(records.X[1:], records.y[1:])
    label = estimator.predict(records.X[:1])[0]
    fall = (estimator.predict_proba(records.X[:1]) - refit.predict_proba(records.X[:1]))[0, label]
    assert rows.start == 0
    assert values[0, 0] == pytest.approx(fall, abs=1e-7)


def test_a_regression_is_explained_too(members):
    records = replace(members, y=members.X[:, 0] + np.sin(np.arange(80)))
    model = fitted(Ridge(alpha=2.0), records)
    assert model.task == "regression"
    ranks = leave_one_out(records.X, records.y, 2.0, "gaussian").self_ranks()
    seen = RecordExplanations().observe(model, records)
    np.testing.assert_array_equal(seen[:, 0] == 0, ranks <= 5)
    inner = Ridge(alpha=2.0).fit(records.X, records.y)
    np.testing.assert_allclose(model.explainer.predict(records.X), inner.predict(records.X))


def test_an_explained_model_answers_as_before(members):
    plain = as_model(LogisticRegression(**EXACT).fit(members.X, members.y))
    model = explained(plain, members)
    assert (model.name, model.task) == (plain.name, plain.task)
    assert model.abilities == plain.abilities | {"records"}
    np.testing.assert_array_equal(model.classes, plain.classes)
    np.testing.assert_array_equal(model.predict(members.X), plain.predict(members.X))
    np.testing.assert_array_equal(model.predict_proba(members.X), plain.predict_proba(members.X))
    for ask in ("loss", "parameters"):
        given = (members.X, members.y) if ask == "loss" else ()
        np.testing.assert_array_equal(getattr(model, ask)(*given), getattr(plain, ask)(*given))
    assert explained(model, members) is model


@pytest.mark.parametrize(
    "before",
    [
        [StandardScaler()],
        [make_pipeline(StandardScaler(), PCA(4))],
        [StandardScaler(), "passthrough"],
        [],
    ],
)
def test_what_comes_before_in_a_pipeline_stays_as_it_is(members, before):
    pipeline = make_pipeline(*before, make_pipeline(StandardScaler(), LogisticRegression(**EXACT)))
    model = fitted(pipeline, members)
    features = members.X
    for step in pipeline.steps[:-1]:
        features = features if step[1] == "passthrough" else step[1].transform(features)
    features = StandardScaler().fit_transform(features)
    np.testing.assert_allclose(model.explainer.X, features, atol=1e-12)
    ranks = leave_one_out(features, members.y).self_ranks()
    seen = RecordExplanations().observe(model, members.take(np.arange(40)))
    # Another number of rows may round otherwise: who is shown is found all the same.
    np.testing.assert_array_equal(seen[:, 0] == 0, ranks[:40] <= 5)


def test_the_best_of_a_search_is_explained(members):
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression(**EXACT)),
                          {"logisticregression__C": [0.1, 1.0]}, cv=2)  # fmt: skip
    model = fitted(search, members)
    assert model.explainer.models.l2 == 1 / search.best_params_["logisticregression__C"]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_table_is_explained_by_what_its_encoder_makes_of_it(sparse):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["a", "b", "c"], 90), "age": rng.normal(size=90)})
    records = Records(frame, (frame["age"] + rng.normal(size=90) > 0).to_numpy())
    encoder = OneHotEncoder(sparse_output=sparse)
    columns = make_column_transformer(
        (encoder, ["town"]), remainder="passthrough", sparse_threshold=float(sparse)
    )
    model = fitted(make_pipeline(columns, LogisticRegression(**EXACT)), records)
    np.testing.assert_array_equal(
        model.explainer.X, np.column_stack([pd.get_dummies(frame["town"]), frame["age"]])
    )
    assert (RecordExplanations(k=90).observe(model, records)[:, 0] == 0).all()


def reason(model, records):
    with pytest.raises(NotApplicableError) as caught:
        explained(as_model(model), records)
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    return said


def test_other_members_than_those_it_was_fitted_on_are_refused(members):
    model = LogisticRegression(**EXACT).fit(members.X, members.y)
    told = "is not the optimum of these 40 members: they are not the records it was fitted on"
    assert told in reason(model, members.take(np.arange(40)))


def test_a_model_that_has_not_converged_is_refused(members):
    hasty = LogisticRegression(tol=1e3).fit(members.X, members.y)
    assert "or it has not converged" in reason(hasty, members)


def test_models_without_exact_influence_are_refused(members):
    forest = RandomForestClassifier(3).fit(members.X, members.y)
    assert "not from a RandomForestClassifier" in reason(forest, members)
    assert "liblinear" in reason(
        LogisticRegression(solver="liblinear").fit(members.X, members.y), members
    )
    assert "is not known exactly" in reason(lambda X: np.full(len(X), 0.5), members)


def test_more_records_than_an_audit_compares_are_refused(members, monkeypatch):
    monkeypatch.setattr(influence, "MOST_RECORDS", 79)
    model = LogisticRegression(**EXACT).fit(members.X, members.y)
    told = reason(model, members)
    assert told.startswith("There are 80 members")
    assert "leakscope.exact.leave_one_out_of" in told


def test_a_model_without_records_is_told_how_to_get_them(members):
    plain = as_model(LogisticRegression(**EXACT).fit(members.X, members.y))
    with pytest.raises(ModelError, match=r"explained\(model, members\)"):
        with_records(plain)
    with pytest.raises(ModelError, match="comes without the records"):
        RecordExplanations().observe(plain, members)


def test_no_influence_keeps_the_records_and_shows_none(model, members):
    explainer = NoInfluence(model.explainer)
    np.testing.assert_array_equal(explainer.X, members.X)
    np.testing.assert_array_equal(explainer.y, members.y)
    np.testing.assert_array_equal(explainer.predict(members.X), model.explainer.predict(members.X))
    ((rows, values),) = explainer.influence_chunks(members.X[:3])
    assert rows == slice(0, 3)
    np.testing.assert_array_equal(values, np.zeros((3, 80)))


def test_the_work_is_told(members):
    steps = []
    plain = as_model(LogisticRegression(**EXACT).fit(members.X, members.y))
    explained(plain, members, lambda *step: steps.append(step))
    assert steps[-1] == ("records left out", 80, 80)


def test_it_is_an_explainer_of_exact_models(model):
    assert isinstance(model.explainer, ExactInfluence)
    assert model.explainer.models.method == "exact"
