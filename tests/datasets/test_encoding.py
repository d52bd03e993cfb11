from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope.datasets.encoding import as_features, codes, levels_of, one_hot, unit_components

FRAME = pd.DataFrame(
    {
        "color": ["red", "?", "blue", "red"],
        "sex": ["M", "F", "F", "M"],
        "code": [10, 9, 10, 2],
        "same": ["No", "No", "No", "No"],
    }
)


def test_levels_are_the_sorted_values() -> None:
    assert levels_of(FRAME, ["color", "code"]) == {
        "color": ["?", "blue", "red"],
        "code": [2, 9, 10],
    }


def test_indicators_name_their_level() -> None:
    matrix, names = one_hot(FRAME, levels_of(FRAME, ["color", "sex", "code", "same"]))
    assert names == [
        "color=?", "color=blue", "color=red", "sex=M", "code=2", "code=9", "code=10", "same=No",
    ]  # fmt: skip
    np.testing.assert_array_equal(
        matrix,
        [
            [0, 0, 1, 1, 0, 0, 1, 1],
            [1, 0, 0, 0, 0, 1, 0, 1],
            [0, 1, 0, 0, 0, 0, 1, 1],
            [0, 0, 1, 1, 1, 0, 0, 1],
        ],
    )


def test_a_value_that_is_no_level_has_no_indicator() -> None:
    matrix, names = one_hot(FRAME, {"color": ["blue", "green", "red"]})
    assert names == ["color=blue", "color=green", "color=red"]
    np.testing.assert_array_equal(matrix, [[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_codes_keep_numbers_and_number_categories_in_sorted_order() -> None:
    np.testing.assert_array_equal(
        codes(FRAME), [[2, 1, 10, 0], [0, 0, 9, 0], [1, 0, 10, 0], [2, 1, 2, 0]]
    )


def test_components_are_the_eigenvectors_of_the_gram_matrix() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 4)) + 5
    found = unit_components(matrix, 3)
    standard = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    values, vectors = np.linalg.eigh(standard @ standard.T)
    oracle = vectors[:, np.argsort(values)[::-1][:3]]
    np.testing.assert_allclose(np.abs(np.sum(found * oracle, axis=0)), 1, rtol=1e-9)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-12)
    loadings = standard.T @ found
    assert (loadings[np.abs(loadings).argmax(axis=0), range(3)] > 0).all()


def test_components_do_not_change_with_the_order_of_records() -> None:
    matrix = np.random.default_rng(1).normal(size=(30, 4))
    order = np.random.default_rng(2).permutation(30)
    np.testing.assert_allclose(
        unit_components(matrix[order], 4), unit_components(matrix, 4)[order], atol=1e-12
    )


def test_features_have_names_when_that_is_wanted() -> None:
    matrix = np.eye(2)
    assert as_features(matrix, ["a", "b"], frame=False) is matrix
    named = as_features(matrix, ["a", "b"], frame=True)
    assert isinstance(named, pd.DataFrame)
    assert list(named.columns) == ["a", "b"]
