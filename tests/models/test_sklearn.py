"""Fitted estimators as they come. Warnings are errors here: asking must not cause any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from leakscope.errors import ModelError
from leakscope.models import as_model
from leakscope.models.feature_columns import matching_columns
from leakscope.models.sklearn import SklearnModel

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = (X[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["age", "pay", "size"])

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "forest": lambda: RandomForestClassifier(5, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=5),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "search": lambda: GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2),
    "search of a pipeline": lambda: GridSearchCV(
        make_pipeline(SimpleImputer(), LogisticRegression()), {"logisticregression__C": [1]}, cv=2
    ),
    "calibrated": lambda: CalibratedClassifierCV(LinearSVC(), cv=2),
    "vote": lambda: VotingClassifier([("a", LogisticRegression())], voting="soft"),
    "lightgbm": lambda: LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1),
    "xgboost": lambda: XGBClassifier(n_estimators=5, n_jobs=1),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "ridge": Ridge,
    "forest": lambda: RandomForestRegressor(5, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), Ridge()),
    "lightgbm": lambda: LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1),
    "xgboost": lambda: XGBRegressor(n_estimators=5, n_jobs=1),
}
# The same features as a model may meet them, whichever of these it was trained on.
FORMS: dict[str, Any] = {
    "array": X,
    "table": FRAME,
    "other order, and more columns": FRAME[["size", "age", "pay"]].assign(city="Oslo"),
    "nullable": FRAME.astype("Float64"),
    "objects": FRAME.astype(object),
}


@cache
def fitted(kind: str, name: str, on_table: bool) -> Any:
    make, target = (CLASSIFIERS, Y) if kind == "classifier" else (REGRESSORS, X[:, 1] * 2)
    return make[name]().fit(FRAME if on_table else X, target)


def cases(names: Iterable[str]) -> list[tuple[str, bool, str]]:
    """Every model, trained either way, in every form it can be asked."""
    return [
        (name, on_table, form)
        for name, on_table, form in product(names, (False, True), FORMS)
        # Without names, the order of columns is all there is.
        if (on_table or not form.startswith("other order"))
        # These two refuse tables of objects, and are not given better ones than the user has.
        and not (on_table and form == "objects" and name in ("lightgbm", "xgboost"))
    ]


@pytest.mark.parametrize(("name", "on_table", "form"), cases(CLASSIFIERS))
def test_classifiers_answer_the_same_however_the_features_come(
    name: str, on_table: bool, form: str
) -> None:
    estimator = fitted("classifier", name, on_table)
    model = as_model(estimator)
    features = FORMS[form]
    expected = estimator.predict_proba(FRAME if on_table else X)
    assert model.task == "classification"
    assert model.abilities - {"parameters", "gradients"} == {
        "labels",
        "probabilities",
        "loss",
        "queries",
    }
    assert model.classes is not None
    assert model.classes.tolist() == [0, 1]
    np.testing.assert_allclose(model.predict_proba(features), expected, atol=1e-7)
    np.testing.assert_array_equal(model.predict(features), expected.argmax(axis=1))
    clipped = np.clip(expected[np.arange(120), Y], 1e-7, 1)
    np.testing.assert_allclose(model.loss(features, Y), -np.log(clipped), rtol=1e-6)


@pytest.mark.parametrize(("name", "on_table", "form"), cases(REGRESSORS))
def test_regressors_answer_the_same_however_the_features_come(
    name: str, on_table: bool, form: str
) -> None:
    estimator = fitted("regressor", name, on_table)
    model = as_model(estimator)
    features = FORMS[form]
    expected = estimator.predict(FRAME if on_table else X)
    assert (model.task, model.classes) == ("regression", None)
    assert model.abilities - {"parameters", "gradients"} == {"labels", "loss", "queries"}
    np.testing.assert_allclose(model.predict(features), expected, rtol=1e-6)
    np.testing.assert_allclose(model.loss(features, X[:, 1]), (expected - X[:, 1]) ** 2, rtol=1e-5)


def test_names_are_those_of_the_model_inside() -> None:
    for name, shown in (
        ("logistic", "LogisticRegression"),
        ("pipeline", "LogisticRegression"),
        ("search", "LogisticRegression"),
        ("search of a pipeline", "LogisticRegression"),
        ("calibrated", "CalibratedClassifierCV"),
        ("xgboost", "XGBClassifier"),
    ):
        assert as_model(fitted("classifier", name, on_table=False)).name == shown


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_feature_names_are_known_after_training_on_a_table_only(name: str) -> None:
    for on_table, names in ((True, ["age", "pay", "size"]), (False, None)):
        assert SklearnModel(fitted("classifier", name, on_table)).feature_names == names


TABLE = pd.DataFrame(
    {
        "age": [30.0, 40, np.nan, 50, 35, 41],
        "job": ["clerk", "nurse", "clerk", None, "nurse", "clerk"],
        "rank": pd.Categorical(["a", "b", "a", "b", "a", "a"]),
        "full": [True, False, True, True, False, False],
    }
)
PAY = np.array(["low", "high", "low", "high", "high", "low"])


def encoding_pipeline() -> Any:
    return make_pipeline(
        make_column_transformer(
            (SimpleImputer(), ["age"]),
            (OneHotEncoder(handle_unknown="ignore"), ["job", "rank"]),
            ("passthrough", ["full"]),
        ),
        LogisticRegression(),
    )


def test_a_pipeline_that_encodes_its_table() -> None:
    pipeline = encoding_pipeline().fit(TABLE, PAY)
    model = as_model(pipeline)
    assert model.name == "LogisticRegression"
    for table in (TABLE, TABLE[["full", "rank", "job", "age"]], TABLE.assign(more=1)):
        np.testing.assert_allclose(model.predict_proba(table), pipeline.predict_proba(TABLE))
    assert set(model.predict(TABLE)) <= {"low", "high"}


def test_a_table_without_a_column_the_model_needs_is_one_sentence() -> None:
    model = as_model(encoding_pipeline().fit(TABLE, PAY))
    with pytest.raises(ModelError, match=r"could not answer for these records: .*'job'") as caught:
        model.predict(TABLE.drop(columns="job"))
    assert "\n" not in str(caught.value)


def test_columns_the_pipeline_drops_need_not_be_there() -> None:
    pipeline = encoding_pipeline().fit(TABLE.assign(unused=1), PAY)
    np.testing.assert_allclose(
        as_model(pipeline).predict_proba(TABLE), pipeline.predict_proba(TABLE.assign(unused=1))
    )


class Ages(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Reads a column by name and keeps no count of features, as people write them."""

    def fit(self, X: Any, y: Any = None) -> Ages:
        self.fitted_ = True
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[Any]:
        return X[["age"]].to_numpy()


def test_a_pipeline_of_ones_own_step_is_given_the_table() -> None:
    pipeline = make_pipeline(Ages(), SimpleImputer(), LogisticRegression()).fit(TABLE, PAY)
    assert as_model(pipeline).predict_proba(TABLE).shape == (6, 2)


def test_a_model_of_an_array_is_given_text_as_it_is_and_says_what_it_says() -> None:
    model = as_model(fitted("classifier", "logistic", on_table=False))
    with pytest.raises(ModelError, match="could not convert string to float: 'x'"):
        model.predict(pd.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0]}))


def test_missing_values_pass_where_the_model_takes_them() -> None:
    gap = np.where(X > 1.5, np.nan, X)
    assert as_model(fitted("classifier", "boosting", on_table=False)).predict(gap).shape == (120,)
    nullable = pd.DataFrame(gap, columns=FRAME.columns).astype("Float64")
    pipeline = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, Y)
    assert as_model(pipeline).predict(nullable).shape == (120,)
    with pytest.raises(ModelError, match=r"LogisticRegression could not answer .*contains NaN"):
        as_model(fitted("classifier", "logistic", on_table=False)).predict(gap)


def test_text_and_categories_with_boosted_trees() -> None:
    table = TABLE.assign(job=TABLE["job"].astype("category"))
    for estimator in (
        HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype"),
        LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1),
        XGBClassifier(n_estimators=3, n_jobs=1, enable_categorical=True),
    ):
        estimator.fit(table, [0, 1, 0, 1, 1, 0])
        expected = estimator.predict_proba(table)
        np.testing.assert_allclose(as_model(estimator).predict_proba(table), expected, atol=1e-7)


def test_lightgbm_forgets_the_spaces_in_its_names() -> None:
    spaced = FRAME.set_axis(["the age", "the pay", "size"], axis=1)
    estimator = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(spaced, Y)
    model = SklearnModel(estimator)
    assert model.feature_names == ["the_age", "the_pay", "size"]
    for features in (spaced, spaced[["size", "the pay", "the age"]], X):
        np.testing.assert_array_equal(
            model.predict_proba(features), estimator.predict_proba(spaced)
        )


def test_columns_are_matched_by_digits_and_underscores() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=[0, "a b", "c"])
    assert matching_columns(["c", "a_b", "0", "d"], frame) == ["c", "a b", 0, "d"]
    numbered = pd.DataFrame(X)
    estimator = XGBClassifier(n_estimators=3, n_jobs=1).fit(numbered, Y)
    assert SklearnModel(estimator).feature_names == ["0", "1", "2"]
    np.testing.assert_allclose(
        as_model(estimator).predict_proba(numbered), estimator.predict_proba(numbered), atol=1e-7
    )


@pytest.mark.parametrize("estimator", [LinearSVC(), SVC()])
def test_classifiers_without_probabilities_have_labels_alone(estimator: Any) -> None:
    model = as_model(estimator.fit(X, Y))
    assert model.abilities - {"parameters", "gradients"} == {"labels", "queries"}
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))
    with pytest.raises(ModelError, match="has no attribute 'predict_proba'"):
        model.loss(X, Y)


TWO = np.column_stack([Y, 1 - Y])
SEVERAL: dict[str, Callable[[], Any]] = {
    "trees": lambda: DecisionTreeClassifier().fit(X, TWO),
    "one after the other": lambda: MultiOutputClassifier(LogisticRegression()).fit(X, TWO),
    "pipeline": lambda: make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, TWO),
    "network": lambda: MLPClassifier(2, solver="lbfgs", max_iter=200, tol=1).fit(X, TWO),
    "regression": lambda: LinearRegression().fit(X, TWO),
    "tree of numbers": lambda: DecisionTreeRegressor().fit(X, TWO),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_outputs_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match="has 2 outputs per record; audit one output at a time"):
        as_model(SEVERAL[name]()).predict(X)


class Shaped(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answers in another shape than scikit-learn: labels in a column, probabilities in a table."""

    def fit(self, X: Any, y: Any) -> Shaped:
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.inner_.predict(X)[:, None]

    def predict_proba(self, X: Any) -> Any:
        names = [str(label) for label in self.classes_]
        return pd.DataFrame(self.inner_.predict_proba(X), columns=names)[names[::-1]]


def test_labels_in_a_column_and_probabilities_in_a_table() -> None:
    estimator = Shaped().fit(X, Y)
    model = as_model(estimator)
    np.testing.assert_array_equal(model.predict(X), estimator.inner_.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), estimator.inner_.predict_proba(X))


def test_one_output_in_a_column_is_one_output() -> None:
    model = as_model(LinearRegression().fit(X, X[:, :1]))
    np.testing.assert_allclose(model.predict(X), X[:, 0])


UNUSABLE: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "not fitted": (LogisticRegression, {}, "This LogisticRegression is not fitted; fit it on"),
    "pipeline": (CLASSIFIERS["pipeline"], {}, "This LogisticRegression is not fitted"),
    "search": (CLASSIFIERS["search"], {}, "This GridSearchCV is not fitted"),
    "lightgbm": (CLASSIFIERS["lightgbm"], {}, "This LGBMClassifier is not fitted"),
    "xgboost": (CLASSIFIERS["xgboost"], {}, "This XGBClassifier is not fitted"),
    "search without a model": (
        lambda: GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2, refit=False).fit(X, Y),
        {},
        "This GridSearchCV cannot predict; make it with refit=True",
    ),
    "another task": (
        lambda: LogisticRegression().fit(X, Y),
        {"task": "regression"},
        "This LogisticRegression is for classification; leave out task='regression'",
    ),
    "other classes": (
        lambda: LogisticRegression().fit(X, Y),
        {"classes": ["a", "b"]},
        "This LogisticRegression knows its classes, which are others; leave out classes=",
    ),
    "classes of numbers": (
        lambda: Ridge().fit(X, Y),
        {"classes": [0, 1]},
        "This Ridge knows its classes, which are others",
    ),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_what_cannot_be_used_is_one_sentence(case: str) -> None:
    make, options, sentence = UNUSABLE[case]
    with pytest.raises(ModelError, match=sentence):
        as_model(make(), **options)


def test_what_is_known_may_be_said_again() -> None:
    estimator = LogisticRegression().fit(X, Y)
    model = as_model(estimator, classes=np.array([0, 1]), task="classification")
    assert model.classes is not None
    assert model.classes.tolist() == [0, 1]


def test_images_go_to_the_model_as_they_are() -> None:
    class Mean(TransformerMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any, y: Any = None) -> Mean:
            self.fitted_ = True
            return self

        def transform(self, X: NDArray[Any]) -> NDArray[Any]:
            return X.mean(axis=(1, 2))[:, None]

    images = X.reshape(-1, 3, 1)
    pipeline = make_pipeline(Mean(), LogisticRegression()).fit(images, Y)
    np.testing.assert_array_equal(
        as_model(pipeline).predict_proba(images), pipeline.predict_proba(images)
    )


def test_a_selector_of_columns_by_type_sees_the_types_it_was_fitted_on() -> None:
    selecting = make_pipeline(
        make_column_transformer(
            (StandardScaler(), make_column_selector(dtype_include="number")), remainder="drop"
        ),
        LogisticRegression(),
    ).fit(FRAME, Y)
    np.testing.assert_allclose(as_model(selecting).predict_proba(X), selecting.predict_proba(FRAME))


def test_estimators_that_work_in_place_leave_the_records_as_they_are() -> None:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).normal(size=(40, 3)) * 5 + 2
    y = (X[:, 0] > 2).astype(int)
    pipeline = make_pipeline(StandardScaler(copy=False), KNeighborsClassifier(3)).fit(X.copy(), y)
    before = X.copy()
    model = as_model(pipeline)
    first, second = model.predict_proba(X), model.predict_proba(X)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(X, before)
    assert X.flags.writeable
