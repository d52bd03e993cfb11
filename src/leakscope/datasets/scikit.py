"""The small data sets that scikit-learn brings along."""

from __future__ import annotations

from typing import Any

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.encoding import as_features
from leakscope.records import Records
from leakscope.registry import register

_INSIDE = "inside scikit-learn"


@register("dataset", "breast-cancer", paper="Street, Wolberg & Mangasarian 1993 (SPIE 1905)")
@about(source=f"https://doi.org/10.24432/C5DW2B (UCI); {_INSIDE}", license="CC BY 4.0")
def breast_cancer(folder: DataFolder, *, frame: bool = False) -> Records:
    """Tumours of 569 patients, 30 measures of cell nuclei: malignant (0) or benign (1)."""
    from sklearn.datasets import load_breast_cancer

    return _records(load_breast_cancer(), folder, frame)


@register("dataset", "iris", paper="Fisher 1936 (Annals of Eugenics)")
@about(source=f"https://doi.org/10.24432/C56C76 (UCI); {_INSIDE}", license="CC BY 4.0")
def iris(folder: DataFolder, *, frame: bool = False) -> Records:
    """Flowers: 150 irises of 3 species, 4 lengths each."""
    from sklearn.datasets import load_iris

    return _records(load_iris(), folder, frame)


@register("dataset", "wine", paper="Aeberhard, Coomans & de Vel 1992 (technical report)")
@about(source=f"https://doi.org/10.24432/C5PC7J (UCI); {_INSIDE}", license="CC BY 4.0")
def wine(folder: DataFolder, *, frame: bool = False) -> Records:
    """Wines: 178 from 3 growers, 13 chemical measures each."""
    from sklearn.datasets import load_wine

    return _records(load_wine(), folder, frame)


@register("dataset", "digits", paper="Alpaydin & Kaynak 1998 (Kybernetika)")
@about(source=f"https://doi.org/10.24432/C50P49 (UCI); {_INSIDE}", license="CC BY 4.0")
def digits(folder: DataFolder, *, frame: bool = False) -> Records:
    """Handwritten digits: 1,797 of them, 64 grey values from 0 to 16 each, in 10 classes."""
    from sklearn.datasets import load_digits

    return _records(load_digits(), folder, frame)


@register("dataset", "diabetes", paper="Efron et al. 2004 (Annals of Statistics)")
@about(source=f"Efron et al. 2004; {_INSIDE}", license="not stated by its authors")
def diabetes(folder: DataFolder, *, frame: bool = False) -> Records:
    """Progress of diabetes in 442 patients, a number (regression), from 10 measures."""
    from sklearn.datasets import load_diabetes

    return _records(load_diabetes(), folder, frame)


def _records(bunch: Any, folder: DataFolder, frame: bool) -> Records:
    return Records(
        X=as_features(bunch.data, bunch.feature_names, frame),
        y=bunch.target,
        name=f"{folder.dataset} records",
    )
