from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost

from leakscope.errors import ModelError
from leakscope.models.categories import Categories, categories_of

TEXTS = ["Zug", "", "bb", "a b", "b"]
NUMBERS = [7, -3, 2**40]
Y = [0, 1] * 15


def trained(**columns: Any) -> Any:
    frame = pd.DataFrame({"number": np.arange(30.0), **columns})
    options = {"enable_categorical": True, "n_estimators": 2, "n_jobs": 1}
    return xgboost.XGBClassifier(**options).fit(frame, Y).get_booster()


@pytest.fixture(scope="module")
def held() -> dict[int, Categories]:
    return categories_of(
        trained(text=pd.Categorical(TEXTS * 6), whole=pd.Categorical(NUMBERS * 10))
    )


def test_every_category_is_found_again(held: dict[int, Categories]) -> None:
    assert sorted(held) == [1, 2]
    column = held[1].column("text", pd.Series([*TEXTS, None]))
    assert column.tolist()[:-1] == TEXTS
    assert column.codes[-1] == -1
    whole = held[2].column("whole", pd.Series([*NUMBERS, None]))  # with a gap they are floats
    assert whole.tolist()[:-1] == NUMBERS
    assert whole.categories.dtype == np.int64


@pytest.mark.parametrize(("place", "value"), [(1, "Bern"), (1, 7), (2, 8), (2, 7.5), (2, "seven")])
def test_another_is_missing_and_named(held: dict[int, Categories], place: int, value: Any) -> None:
    known: Any = {1: "bb", 2: 7}[place]
    column = pd.Series([known, value, value], dtype=object)
    with pytest.warns(UserWarning, match=rf"'it' holds categories .* such as {value!r};"):
        found = held[place].column("it", column)
    assert found.tolist()[0] == known
    assert (found.codes == [0, -1, -1]).all()
    with pytest.warns(UserWarning, match="such as"):
        alone = held[place].column("it", column[1:])
    assert (alone.codes == -1).all()
    assert len(alone.categories) == 1  # XGBoost takes no column without any


def test_letters_beyond_ascii_are_refused_as_long_as_xgboost_takes_one_for_another() -> None:
    towns = np.array(["Zürich", "Genève", "Bern", "Bâle"])[np.arange(400) % 4]
    y = np.arange(400) % 2
    frame = pd.DataFrame({"town": pd.Categorical(towns)})
    fitted = xgboost.XGBClassifier(enable_categorical=True, n_estimators=4, n_jobs=1).fit(frame, y)
    assert fitted.score(frame, y) == 1
    ordered = pd.DataFrame({"town": pd.Categorical(towns, categories=sorted(set(towns))[::-1])})
    assert fitted.score(ordered, y) < 1  # where this fails, such models need no longer be refused
    with pytest.raises(ModelError, match="letters beyond ASCII"):
        categories_of(fitted.get_booster())


def test_a_model_without_categories_has_none() -> None:
    assert categories_of(trained()) == {}
    assert categories_of(trained(text=pd.Categorical(TEXTS * 6))).keys() == {1}
    linear = xgboost.train({"booster": "gblinear"}, xgboost.DMatrix(np.arange(30.0)[:, None], Y), 1)
    assert categories_of(linear) == {}
