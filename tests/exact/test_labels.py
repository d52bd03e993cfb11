from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from leakscope.errors import InputError
from leakscope.exact.families import Binomial, Gaussian, Multinomial
from leakscope.exact.labels import _checksums, feature_matrix, labelled, named

X = np.arange(12.0).reshape(6, 2)


def test_the_labels_choose_the_family() -> None:
    for y, family in [
        ([0, 1, 0, 1, 0, 1], Binomial()),
        ([0.0, 1.0, 0.0, 1.0, 0.0, 1.0], Binomial()),
        ([True, False, True, False, True, False], Binomial()),
        (["a", "b", "c", "a", "b", "c"], Multinomial(3)),
        ([1, 2, 3, 1, 2, 3], Multinomial(3)),
        ([0.5, 1, 2, 3, 4, 5], Gaussian()),
    ]:
        assert labelled(X, y, "auto", None)[1].family == family
    assert labelled(X, [0, 1, 0, 1, 0, 1], "gaussian", None)[1].family == Gaussian()
    assert labelled(X, [0, 1, 0, 1, 0, 1], "multinomial", None)[1].family == Multinomial(2)


def test_classes_are_numbered_in_order() -> None:
    features, found = labelled(pd.DataFrame(X), ["b", "a", "b", "a", "a", "b"], "auto", [2] * 6)
    assert (features == X).all()
    assert found.classes is not None
    assert found.classes.tolist() == ["a", "b"]
    assert found.targets.tolist() == [1, 0, 1, 0, 0, 1]
    assert found.weights.tolist() == [2.0] * 6
    numbers = labelled(X, [0, 1, 0, 1, 0, 1], "gaussian", None)[1]
    assert numbers.classes is None
    assert numbers.targets.dtype == np.float64


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": csr_matrix(X)}, r"sparse matrix; hand over X.toarray\(\)"),
        ({"X": [["a"], ["b"]]}, "features must be numbers, got an array of <U1"),
        ({"X": np.arange(6.0)}, r"features must have the shape \(n, d\), got \(6,\)"),
        ({"X": np.empty((6, 0))}, r"features must have the shape \(n, d\)"),
        ({"X": np.where(X == 4, np.nan, X)}, "finite, and row 2 is not"),
        ({"y": [0, 1]}, r"needs features \(n, d\) and labels \(n,\) .* \(6, 2\) and \(2,\)"),
        ({"X": X[:1], "y": [0]}, "of at least 2 records"),
        ({"family": "poisson"}, "family cannot be 'poisson'"),
        ({"y": ["a"] * 6, "family": "gaussian"}, "finite numbers, got an array of <U1"),
        ({"y": [0.5, np.nan, 1, 2, 3, 4]}, "labels of a gaussian model must be finite numbers"),
        ({"y": [0, np.nan, 1, 0, 1, 0], "family": "binomial"}, "labels must be finite; drop"),
        ({"y": [1] * 6}, "logistic model needs at least 2 classes, the labels have 1"),
        ({"y": [0, 1, 2] * 2, "family": "binomial"}, "binomial model needs 2 classes, .* have 3"),
        ({"y": [0, 1, 1, 1, 1, 1]}, "Without record 0 a class would have no record left"),
        ({"y": [0, 1, 2, 3, 4, 5]}, r"each of 6 records \(0, 1, 2, 3, 4, …\).*family='gaussian'"),
        ({"y": [0, 1, 2, 0, 1, 0]}, "Without record 2 a class"),
        ({"sample_weight": [1.0] * 5}, r"sample_weight must be 6 finite numbers .* shape \(5,\)"),
        ({"sample_weight": [1, 1, 1, 1, 1, -1]}, "of at least 0"),
        ({"sample_weight": [1, 1, 1, 1, 1, np.inf]}, "finite numbers"),
        ({"sample_weight": [1, 0, 0, 0, 0, 0]}, "above 0 for at least 2 records"),
        ({"sample_weight": [1, 0, 1, 0, 1, 0]}, "class 1 has no record of any weight; drop it"),
        ({"sample_weight": [1, 0, 1, 0, 1, 1]}, "Without record 5 a class would have no record"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], message: str) -> None:
    usual = {"X": X, "y": [0, 1, 0, 1, 0, 1], "family": "auto", "sample_weight": None}
    with pytest.raises(InputError, match=message):
        labelled(**{**usual, **given})


def test_records_that_are_the_same_are_found() -> None:
    features = np.array([[0.0, 1.0], [1.0, 1.0], [-0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    found = labelled(features, [0, 1, 0, 1, 1, 0], "auto", [1, 1, 1, 1, 1, 2])[1]
    assert found.first_alike(features).tolist() == [0, 1, 0, 3, 1, 5]


def test_records_with_the_same_checksum_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = labelled(features, [0, 1, 0, 1], "auto", None)[1]
    monkeypatch.setattr("leakscope.exact.labels._checksums", lambda bits: 0 * bits[:, 0])
    assert found.first_alike(features).tolist() == [0, 1, 0, 3]


def test_checksums_tell_rows_of_small_numbers_apart() -> None:
    rng = np.random.default_rng(0)
    kinds = np.column_stack([np.eye(20)[rng.integers(20, size=20_000)] for _ in range(6)])
    pixels = rng.integers(17, size=(20_000, 64)).astype(float)
    for rows in (kinds, pixels):
        distinct = np.unique(rows, axis=0)
        assert len(np.unique(_checksums(distinct.view(np.uint64)))) == len(distinct)


def test_a_width_is_kept() -> None:
    assert feature_matrix([[1, 2]], 2).dtype == np.float64
    with pytest.raises(InputError, match=r"shape \(n, 3\), got \(6, 2\)"):
        feature_matrix(X, 3)


def test_records_are_named() -> None:
    assert named([3]) == "record 3"
    assert named([3, 5]) == "each of 2 records (3, 5)"
    assert named(range(9)) == "each of 9 records (0, 1, 2, 3, 4, …)"
