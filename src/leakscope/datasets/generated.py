"""Data sets made on the spot."""

from __future__ import annotations

from leakscope.datasets.catalog import DataFolder, about
from leakscope.errors import InputError
from leakscope.options import whole_number
from leakscope.records import Records
from leakscope.registry import register

_SOURCE = "made on the spot by scikit-learn"


@register("dataset", "synthetic", paper="Shokri, Strobel & Zick 2021 (AIES), section 4.4")
@about(source=_SOURCE, license="none needed")
def synthetic(
    folder: DataFolder,
    *,
    n: int = 20_000,
    features: int = 20,
    classes: int = 2,
    separation: float = 1.0,
    flip: float = 0.01,
    seed: int = 0,
) -> Records:
    """Gaussian clusters at the corners of a cube, one per class, every feature informative.

    n: how many records. separation: half the length of the cube's edges. flip: the share of records
    whose label is drawn at random. The defaults are those of the paper's study of dimensions.
    """
    whole_number("classes", classes, 2)
    whole_number("n", n, classes)
    corners = (classes - 1).bit_length()
    if features < corners:
        raise InputError(
            f"The option features is {features!r}, where {classes} classes need at least {corners}"
        )
    _check_positive("separation", separation)
    if not 0 <= flip <= 1:
        raise InputError(f"The option flip is {flip!r}, where a share from 0 to 1 is needed")
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n_samples=n,
        n_features=features,
        n_informative=features,
        n_redundant=0,
        n_repeated=0,
        n_classes=classes,
        n_clusters_per_class=1,
        class_sep=separation,
        flip_y=flip,
        random_state=whole_number("seed", seed, 0, 2**32 - 1),
    )
    return Records(X=X, y=y, name="synthetic records")


@register("dataset", "synthetic-regression")
@about(source=_SOURCE, license="none needed")
def synthetic_regression(
    folder: DataFolder,
    *,
    n: int = 2_000,
    features: int = 20,
    noise: float = 1.0,
    seed: int = 0,
) -> Records:
    """A linear function of Gaussian features plus Gaussian noise, whose deviation is given."""
    _check_positive("noise", noise)
    from sklearn.datasets import make_regression

    X, y = make_regression(
        n_samples=whole_number("n", n, 2),
        n_features=whole_number("features", features, 1),
        n_informative=features,
        noise=noise,
        random_state=whole_number("seed", seed, 0, 2**32 - 1),
    )
    return Records(X=X, y=y, name="synthetic records")


def _check_positive(option: str, value: float) -> None:
    if not 0 <= value < float("inf"):
        raise InputError(
            f"The option {option} is {value!r}, where a number of at least 0 is needed"
        )
