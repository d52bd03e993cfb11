from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from leakscope.errors import InputError, ModelError, OracleBudgetError, RecordsError
from leakscope.models import HttpModel, as_model
from serving import as_json, predicting, serving

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.digitize(X[:, 0], [-0.5, 0.5])
MODEL = LogisticRegression().fit(X, Y)


def probabilities(instances: list[Any]) -> Any:
    return MODEL.predict_proba(np.array(instances, dtype=float)).tolist()


def test_it_answers_as_the_model_does() -> None:
    with serving(predicting(probabilities)) as served:
        http = HttpModel(served.url, batch_size=7)
        np.testing.assert_allclose(http(X), MODEL.predict_proba(X), rtol=0, atol=1e-12)
        model = as_model(http)
        np.testing.assert_array_equal(model.predict(X), MODEL.predict(X))
    assert model.name == f"the model at {served.url}"
    assert model.abilities == {"labels", "loss", "queries", "probabilities"}


def test_single_precision_survives_the_journey() -> None:
    single = X.astype(np.float32)
    with serving(lambda asked, _: as_json({"predictions": asked["instances"]})) as served:
        back = HttpModel(served.url)(single)
    np.testing.assert_array_equal(back.astype(np.float32), single)


def test_a_regression_answers_with_one_number_each() -> None:
    line = LinearRegression().fit(X, X[:, 1])
    with serving(predicting(lambda rows: line.predict(np.array(rows)).tolist())) as served:
        model = as_model(HttpModel(served.url), task="regression")
        np.testing.assert_allclose(model.predict(X), line.predict(X), rtol=0, atol=1e-12)


def test_no_record_is_asked_about_twice() -> None:
    with serving(predicting(probabilities)) as served:
        http = HttpModel(served.url, batch_size=100)
        twice = X[[0, 1, 0, 2, 1]]
        assert http.unasked(twice, X[:4]) == 4
        np.testing.assert_array_equal(http(twice), http(X[:3])[[0, 1, 0, 2, 1]])
        assert http.unasked(twice, X[:4]) == 1
        http(X[:10])
    assert [len(body["instances"]) for body in served.bodies] == [3, 7]
    assert (http.spent.records, http.spent.requests) == (10, 2)


def test_what_was_answered_before_a_failure_is_not_asked_again() -> None:
    def answer(asked: Any, before: int) -> Any:
        if before == 1:
            return as_json({}, 404)
        return as_json({"predictions": probabilities(asked["instances"])})

    with serving(answer) as served:
        http = HttpModel(served.url, batch_size=30)
        with pytest.raises(ModelError, match="status 404"):
            http(X)
        http(X)
    assert [len(body["instances"]) for body in served.bodies] == [30, 30, 30]


def test_the_budget_counts_different_records() -> None:
    with serving(predicting(probabilities)) as served:
        http = HttpModel(served.url, budget=20)
        http(X[:15])
        http(X[:15])
        with pytest.raises(
            OracleBudgetError, match=r"asked about 15 of the 20 .* 6 more are needed"
        ):
            http(X[:21])
        assert http.remaining == 5
        http(X[:20])
    assert len(served.bodies) == 2


def test_tables_go_as_lists_or_as_objects() -> None:
    frame = pd.DataFrame(
        {"age": [30, 41], "job": ["cook", None], "rate": [0.5, np.nan], "old": [False, True]}
    )
    with serving(lambda asked, _: as_json({"predictions": [0.5] * len(asked["instances"])})) as to:
        HttpModel(to.url)(frame)
        HttpModel(to.url, form="objects")(frame)
    lists, objects = (body["instances"] for body in to.bodies)
    assert lists == [[30, "cook", 0.5, False], [41, None, None, True]]
    assert objects == [dict(zip(frame.columns, row, strict=True)) for row in lists]


def test_gaps_and_pictures_go_as_they_are() -> None:
    pictures = np.arange(8.0).reshape(2, 2, 2)
    gaps = np.array([[1.0, np.nan]])
    with serving(lambda asked, _: as_json([0.5] * len(asked["rows"]))) as served:
        http = HttpModel(served.url, instances="rows", predictions="")
        http(pictures)
        http(gaps)
    assert served.bodies == [{"rows": pictures.tolist()}, {"rows": [[1.0, None]]}]


@pytest.mark.parametrize("column", [[pd.Timestamp(2020, 1, 1)], [{1, 2}], [np.inf]])
def test_what_json_cannot_hold_is_refused(column: list[Any]) -> None:
    http = HttpModel("http://127.0.0.1:1/")
    with pytest.raises(RecordsError, match=r"A record cannot be sent to .* as JSON"):
        http(pd.DataFrame({"x": column}))


def test_objects_need_names() -> None:
    with pytest.raises(RecordsError, match="give a DataFrame, or form='lists'"):
        HttpModel("http://127.0.0.1:1/", form="objects")(X)
    with pytest.raises(InputError, match="did you mean 'lists'"):
        HttpModel("http://127.0.0.1:1/", form="list")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("predictions", "sentence"),
    [
        (["a", "b"], 'answered "a" for a record'),
        ([0.5, "0.5"], 'answered "0.5" for a record'),
        ([[0.5, None], [0.5, 0.5]], "answered [0.5, null] for a record"),
        ([True, False], "answered true for a record"),
        ([{"p": 1}, {"p": 0}], 'answered {"p": 1} for a record'),
        ([[0.5, 0.5], [1.0]], "answered [0.5, 0.5] for a record"),
        ([[[0.5]], [[0.5]]], "answered [[0.5]] for a record"),
        (["x" * 500, 0], "x…"),
        ([10**400, 1], "answered 1000"),
        ([1e308 * 10, 1], "is no number of JSON"),
        ([0.5], "answered with 1 entries for 2 records"),
        (0.5, "answered with a JSON number where a list"),
    ],
)
def test_answers_that_are_no_numbers_are_one_sentence(predictions: Any, sentence: str) -> None:
    with (
        serving(lambda *_: as_json({"predictions": predictions})) as served,
        pytest.raises(ModelError) as caught,
    ):
        HttpModel(served.url)(X[:2])
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_number_beyond_all_bounds_is_refused() -> None:
    from serving import Reply

    with (
        serving(lambda *_: Reply(b'{"predictions": [1e999]}')) as served,
        pytest.raises(ModelError, match="a number too large to be one"),
    ):
        HttpModel(served.url)(X[:1])


def test_answers_of_changing_shape_are_refused() -> None:
    def answer(asked: Any, before: int) -> Any:
        return as_json({"predictions": [[0.5, 0.5] if before else 0.5] * len(asked["instances"])})

    with (
        serving(answer) as served,
        pytest.raises(ModelError, match="with 2 numbers for a record and with one number for"),
    ):
        HttpModel(served.url, batch_size=2)(X[:4])
