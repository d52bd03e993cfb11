from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from leakscope.errors import InputError, RecordsError
from leakscope.recipes.tensors import table_of
from leakscope.records import Records

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
WORDS = np.array(["low", "high", "low"])


def test_labels_become_the_places_of_the_classes() -> None:
    table = table_of(Records(X, WORDS), None, None, "float32")
    assert table.X.dtype == torch.float32
    assert table.y.tolist() == [1, 0, 1]
    assert table.classes is not None
    assert table.classes.tolist() == ["high", "low"]
    assert (table.task, table.inputs, table.outputs, table.loss) == (
        "classification", 2, 2, "cross_entropy",
    )  # fmt: skip


def test_the_order_of_the_classes_can_be_given() -> None:
    table = table_of(Records(X, WORDS), None, ("low", "middle", "high"), "float32")
    assert (table.y.tolist(), table.outputs) == ([0, 2, 0], 3)
    with pytest.raises(RecordsError, match=r"label 'high', which is not among the classes 'low', "):
        table_of(Records(X, WORDS), None, ("low", "middle"), "float32")


def test_numbers_with_a_fraction_are_predicted_as_such() -> None:
    table = table_of(Records(X, np.array([0.5, 1.0, 2.0])), None, None, "float64")
    assert (table.task, table.outputs, table.loss) == ("regression", 1, "squared_error")
    assert table.y.dtype == table.X.dtype == torch.float64
    assert table.y.tolist() == [0.5, 1.0, 2.0]


def own(outputs: Any, y: Any) -> Any:
    return outputs.sum()


@pytest.mark.parametrize(
    ("y", "loss", "task"),
    [
        ([0.0, 1.0, 1.0], "cross_entropy", "classification"),
        ([0, 1, 1], "squared_error", "regression"),
        ([0, 1, 1], own, "classification"),
        ([0.0, 1.5, 1.0], own, "regression"),
    ],
)
def test_the_loss_says_what_labels_are(y: list[Any], loss: Any, task: str) -> None:
    table = table_of(Records(X, np.array(y)), loss, None, "float32")
    assert table.task == task
    assert table.y.is_floating_point() == (task == "regression")


def test_images_keep_their_shape() -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2)
    table = table_of(Records(images, np.array([0, 1])), None, None, "float32")
    assert table.inputs == (3, 2, 2)
    assert table.X[1, 2, 1, 1].item() == 23.0


def test_a_table_of_numbers_will_do_and_texts_will_not() -> None:
    frame = pd.DataFrame({"age": [30, 40, 50], "full": [True, False, True]})
    table = table_of(Records(frame, WORDS), None, None, "float32")
    assert table.X.tolist() == [[30.0, 1.0], [40.0, 0.0], [50.0, 1.0]]
    frame["job"] = ["clerk", "nurse", "clerk"]
    with pytest.raises(RecordsError, match=r"Column 'job' of the staff is not .* holds 'clerk'"):
        table_of(Records(frame, WORDS, name="staff"), None, None, "float32")


@pytest.mark.parametrize("frame", [False, True])
def test_gaps_are_refused_where_they_are(frame: bool) -> None:
    gaps: Any = np.where(X == 4, np.nan, X)
    if frame:
        gaps = pd.DataFrame(gaps, columns=["0", "1"])
    with pytest.raises(RecordsError, match=r"Column '1' of the records is missing in row 1 "):
        table_of(Records(gaps, WORDS), None, None, "float32")


def test_labels_that_cannot_be_learned_are_refused() -> None:
    with pytest.raises(InputError, match="All of the 3 records have the label 7"):
        table_of(Records(X, np.full(3, 7)), None, None, "float32")
    with pytest.raises(RecordsError, match=r"no numbers .*'low'.*; choose the loss cross_entropy"):
        table_of(Records(X, WORDS), "squared_error", None, "float32")
    with pytest.raises(InputError, match="loss cannot be 'l2'"):
        table_of(Records(X, WORDS), "l2", None, "float32")
