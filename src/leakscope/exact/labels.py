"""Training records of a regression, checked at the door, and the family their labels call for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError
from leakscope.exact.checks import finite
from leakscope.exact.families import FAMILIES, Binomial, Family, Gaussian, Multinomial
from leakscope.options import one_of
from leakscope.protocols import Floats, Labels

_NAMED = 5  # records that a message lists before it only counts


@dataclass(frozen=True, eq=False)
class Labelled:
    """The labels of n records as a family takes them.

    targets (n,): class numbers, or the numbers themselves; classes (C,), or None for numbers;
    weights (n,).
    """

    family: Family
    targets: NDArray[Any]
    classes: Labels | None
    weights: Floats

    def first_alike(self, X: Floats) -> NDArray[np.intp]:
        """For each record the first one that has its features, label and weight, (n,)."""
        # In C's order, whatever the order of X: a row is then one stretch of bytes.
        rows = np.ascontiguousarray(np.column_stack([X, self.targets, self.weights]))
        rows += 0.0  # −0 and 0 are the same number, and not the same bytes
        bits = rows.view(np.uint64)
        _, first, inverse = np.unique(_checksums(bits), return_index=True, return_inverse=True)
        alike: NDArray[np.intp] = first[inverse]
        if len(first) == len(rows) or (bits[alike] == bits).all():
            return alike
        # Rows with the same checksum that are not the same: they are looked up one by one.
        data, width = rows.tobytes(), rows.itemsize * rows.shape[1]
        seen: dict[bytes, int] = {}
        places = (data[start : start + width] for start in range(0, len(data), width))
        return np.array([seen.setdefault(row, i) for i, row in enumerate(places)], dtype=np.intp)


def _checksums(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Of rows of numbers (n, d), as bits: the sum of a multiple of each, modulo 2⁶⁴."""
    multiples = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64)
    # Small whole numbers have zeros alone in their lower half, and would lose most of a multiple.
    folded = bits ^ (bits >> np.uint64(32))
    sums: NDArray[np.uint64] = np.einsum("nd,d->n", folded, multiples | np.uint64(1))
    return sums


def labelled(
    X: ArrayLike, y: ArrayLike, family: str, sample_weight: ArrayLike | None
) -> tuple[Floats, Labelled]:
    """Features (n, d), and the labels with their family, if every record can be left out."""
    one_of("family", family, ["auto", *FAMILIES])
    features = feature_matrix(X)
    labels = np.asarray(y)
    if labels.shape != features.shape[:1] or len(labels) < 2:
        raise InputError(
            "Leaving out records needs features (n, d) and labels (n,) of at least 2 records, got "
            f"shapes {features.shape} and {labels.shape}"
        )
    weights = _weights(sample_weight, len(labels))
    if family == "gaussian" or (family == "auto" and _has_fractions(labels)):
        return features, Labelled(Gaussian(), _numbers(labels), None, weights)
    return features, _classified(labels, family, weights)


def feature_matrix(X: ArrayLike, width: int | None = None) -> Floats:
    """Features (n, d) as finite numbers, of this width if it is given."""
    if hasattr(X, "toarray"):
        raise InputError("The features are a sparse matrix; hand over X.toarray()")
    features = finite("features", X)
    wide = features.ndim == 2 and features.shape[1] >= 1
    if not wide or (width is not None and features.shape[1] != width):
        wanted = "d" if width is None else width
        raise InputError(f"The features must have the shape (n, {wanted}), got {features.shape}")
    return features


def named(records: Sequence[int]) -> str:
    """Records in a sentence: the first few by number."""
    if len(records) == 1:
        return f"record {records[0]}"
    shown = ", ".join(str(record) for record in records[:_NAMED])
    return f"each of {len(records)} records ({shown}{', …' if len(records) > _NAMED else ''})"


def _has_fractions(labels: Labels) -> bool:
    return labels.dtype.kind == "f" and bool((labels % 1 != 0).any())


def _numbers(labels: Labels) -> Floats:
    if labels.dtype.kind not in "biuf" or not np.isfinite(labels.astype(np.float64)).all():
        raise InputError(
            f"The labels of a gaussian model must be finite numbers, got an array of {labels.dtype}"
        )
    return labels.astype(np.float64)


def _weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(
            f"The option sample_weight must be {n} finite numbers of at least 0, got an array of "
            f"shape {weights.shape}"
        )
    if np.count_nonzero(weights) < 2:
        raise InputError("The option sample_weight must be above 0 for at least 2 records")
    return weights


def _classified(labels: Labels, family: str, weights: Floats) -> Labelled:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("The labels must be finite; drop the records that have none")
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2 or (family == "binomial" and len(classes) > 2):
        wanted = "2 classes" if family == "binomial" else "at least 2 classes"
        raise InputError(
            f"A {family if family != 'auto' else 'logistic'} model needs {wanted}, "
            f"the labels have {len(classes)}"
        )
    counts = np.bincount(numbers[weights > 0], minlength=len(classes))
    if (counts < 2).any():
        missing = classes[counts == 0]
        if len(missing):
            raise InputError(f"The class {missing[0]} has no record of any weight; drop it")
        alone = [
            int(np.flatnonzero((numbers == c) & (weights > 0))[0])
            for c in np.flatnonzero(counts == 1)
        ]
        raise InputError(
            f"Without {named(alone)} a class would have no record left, and its intercept no "
            "optimum; drop the class, or use family='gaussian' if the labels are numbers"
        )
    chosen: Family = (
        Binomial() if len(classes) == 2 and family != "multinomial" else Multinomial(len(classes))
    )
    return Labelled(chosen, numbers, classes, weights)
