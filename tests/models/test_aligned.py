from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from leakscope.channels.outputs import Label, Loss, Probabilities
from leakscope.errors import ModelError, RecordsError
from leakscope.models import as_model
from leakscope.models.aligned import aligned
from leakscope.probabilities import CLIP
from leakscope.protocols import Model
from leakscope.records import Records
from leakscope.registry import lookup

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = np.array(["ant", "bee", "cat"])[rng.integers(3, size=30)]
CLASSES = np.array(["bee", "wasp", "cat", "ant"])


def trained_without_wasps() -> Model:
    return as_model(GaussianNB().fit(X, Y))


def test_a_class_it_was_not_trained_on_has_a_column_of_zeros() -> None:
    model = trained_without_wasps()
    wide = aligned(model, CLASSES)
    assert isinstance(wide, Model)
    probabilities = wide.predict_proba(X)
    np.testing.assert_array_equal(probabilities[:, [3, 0, 2]], model.predict_proba(X))
    np.testing.assert_array_equal(probabilities[:, 1], 0)
    np.testing.assert_array_equal(wide.predict(X), model.predict(X))
    assert (wide.name, wide.task, wide.abilities) == (model.name, model.task, model.abilities)
    assert wide.classes is not None
    assert wide.classes.tolist() == CLASSES.tolist()


def test_channels_see_every_record() -> None:
    labels = Y.copy().astype("<U4")
    labels[0] = "wasp"
    records = Records(X, labels)
    model = trained_without_wasps()
    wide = aligned(model, CLASSES)
    with pytest.raises(RecordsError, match="'wasp'"):
        Loss().observe(model, records)
    loss = Loss().observe(wide, records)[:, 0]
    assert loss[0] == -np.log(CLIP)
    np.testing.assert_array_equal(loss[1:], model.loss(X[1:], Y[1:]))
    margin = lookup("channel", "margin").thing().observe(wide, records)[:, 0]
    assert margin[0] == pytest.approx(np.log(CLIP))
    assert np.isfinite(margin).all()
    numbers = Label().observe(wide, records)[:, 0].astype(int)
    np.testing.assert_array_equal(CLASSES[numbers], model.predict(X))
    assert Probabilities().width(wide) == 4


def test_a_model_of_these_classes_is_left_as_it_is() -> None:
    model = trained_without_wasps()
    assert aligned(model, np.array(["ant", "bee", "cat"])) is model
    assert aligned(model, np.array(["ant", "bee", "cat"], dtype=object)) is model
    wide = aligned(model, CLASSES)
    assert aligned(wide, CLASSES) is wide
    numbers = as_model(LogisticRegression().fit(X, (Y == "ant").astype(int)))
    assert aligned(numbers, np.array([0.0, 1.0])) is numbers


def test_a_regression_has_no_classes() -> None:
    model = as_model(Ridge().fit(X, X[:, 0]))
    assert aligned(model, None) is model
    assert aligned(model, CLASSES) is model


def test_a_single_class_is_certain() -> None:
    model = as_model(DecisionTreeClassifier().fit(X, np.ones(30, dtype=int)))
    wide = aligned(model, np.array([0, 1]))
    np.testing.assert_array_equal(wide.predict_proba(X), np.tile([0.0, 1.0], (30, 1)))
    np.testing.assert_array_equal(wide.loss(X, np.ones(30, dtype=int)), 0)
    np.testing.assert_array_equal(wide.predict(X), 1)


def test_a_class_too_many_is_one_sentence() -> None:
    with pytest.raises(
        ModelError, match=r"GaussianNB has the class 'bee', which is not among 'ant', 'cat'; give"
    ):
        aligned(trained_without_wasps(), np.array(["ant", "cat"]))
    digits = as_model(GaussianNB().fit(X, (Y == "ant").astype(int)))
    with pytest.raises(ModelError, match="the class 0, which is not among '0', '1'"):
        aligned(digits, np.array(["0", "1"]))


def test_classes_must_be_known() -> None:
    with pytest.raises(ModelError, match="before its classes are known"):
        aligned(as_model(lambda X: X), CLASSES)
    with pytest.raises(ModelError, match="before its classes are known"):
        aligned(trained_without_wasps(), None)


def test_a_model_of_labels_alone_stays_one() -> None:
    wide = aligned(as_model(LinearSVC().fit(X, Y)), CLASSES)
    assert wide.abilities == {"labels", "queries"}
    assert Label().observe(wide, Records(X, Y)).shape == (30, 1)


def test_it_can_be_sent_to_another_process() -> None:
    wide = aligned(trained_without_wasps(), CLASSES)
    again = pickle.loads(pickle.dumps(wide))
    np.testing.assert_array_equal(again.predict_proba(X), wide.predict_proba(X))
