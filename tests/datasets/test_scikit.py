from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from leakscope.datasets import load_dataset


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("breast-cancer", (569, 30), 2),
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
        ("digits", (1_797, 64), 10),
        ("diabetes", (442, 10), None),
    ],
)
def test_records_are_what_scikit_learn_has(
    name: str, shape: tuple[int, int], classes: int | None
) -> None:
    bunch = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")()
    records = load_dataset(name)
    assert records.X.shape == shape
    np.testing.assert_array_equal(records.X, bunch.data)
    np.testing.assert_array_equal(records.y, bunch.target)
    assert records.name == f"{name} records"
    if classes is None:
        assert records.y.dtype.kind == "f"
    else:
        assert np.unique(records.y).tolist() == list(range(classes))
    named = load_dataset(name, frame=True)
    assert isinstance(named.X, pd.DataFrame)
    assert named.feature_names == list(bunch.feature_names)
    np.testing.assert_array_equal(named.X, bunch.data)
