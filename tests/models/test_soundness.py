"""Models that would crash the program, or have it read and write elsewhere, when they are asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC
from sklearn.tree import DecisionTreeClassifier

from leakscope.errors import UntrustedFileError
from leakscope.models import load_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.arange(150) % 3

SOUND = {
    "tree": DecisionTreeClassifier(max_leaf_nodes=5),
    "leaf": DecisionTreeClassifier(max_depth=1, min_samples_leaf=100),
    "forest": RandomForestClassifier(2),
    "extra": ExtraTreesClassifier(2),
    "isolation": IsolationForest(n_estimators=2),
    "boosted": GradientBoostingClassifier(n_estimators=2),
    "boosted from zero": GradientBoostingRegressor(n_estimators=2, init="zero"),
    "histograms": HistGradientBoostingClassifier(max_iter=2),
    "box": KNeighborsClassifier(algorithm="kd_tree", leaf_size=5),
    "ball": KNeighborsClassifier(algorithm="ball_tree", leaf_size=5),
    "brute": KNeighborsClassifier(algorithm="brute"),
    "radius": RadiusNeighborsClassifier(10.0),
    "vectors": SVC(),
    "linear vectors": NuSVC(kernel="linear"),
    "regression": SVR(),
    "chained": make_pipeline(StandardScaler(), LogisticRegression()),
    "not fitted": RandomForestClassifier(),
}


def asked(model: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize("name", SOUND)
def test_what_training_made_is_loaded(name: str, tmp_path: Path) -> None:
    model = SOUND[name]
    if name != "not fitted":
        model.fit(X, Y)
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    if name != "not fitted":
        np.testing.assert_array_equal(asked(loaded), asked(model))


def nodes_of(field: str, number: int) -> Callable[[Any], None]:
    """Write a number into the root of a tree."""

    def damage(model: Any) -> None:
        tree = model.tree_ if hasattr(model, "tree_") else model.estimators_[0].tree_
        state = tree.__getstate__()
        state["nodes"] = state["nodes"].copy()
        state["nodes"][field][0] = number
        tree.__setstate__(state)

    return damage


def bins_of(**numbers: int) -> Callable[[Any], None]:
    def damage(model: Any) -> None:
        for field, number in numbers.items():
            model._predictors[0][0].nodes[field][0] = number

    return damage


def neighbours_of(place: int, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def damage(model: Any) -> None:
        state = [*model._tree.__getstate__()]
        state[place] = change(state[place])
        model._tree.__setstate__(tuple(state))

    return damage


def attribute(name: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Change something that a model holds."""

    def damage(model: Any) -> None:
        vars(model)[name] = change(vars(model).get(name))

    return damage


def bent(nodes: Any) -> Any:
    """Nodes of which the last, which has no children, says that it is no leaf."""
    nodes = nodes.copy()
    nodes["is_leaf"][-1] = 0
    return nodes


DAMAGES: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "a child beyond": ("tree", nodes_of("left_child", 10**9), "leads to nodes"),
    "a child in a forest": ("forest", nodes_of("right_child", 10**9), "leads to nodes"),
    "a circle": ("tree", nodes_of("left_child", 0), "leads to nodes"),
    "one child twice": ("tree", nodes_of("left_child", 2), "one node in two ways"),
    "a column beyond": ("tree", nodes_of("feature", 3), "asks about columns"),
    "a column before": ("extra", nodes_of("feature", -7), "asks about columns"),
    "no features": ("tree", attribute("n_features_in_", lambda _: None), "does not say how many"),
    "fewer features": ("tree", attribute("n_features_in_", lambda _: 2), "no tree for its rec"),
    "no tree": ("tree", attribute("tree_", lambda _: None), "has no tree"),
    "more classes": (
        "boosted",
        attribute("estimators_", lambda trees: np.tile(trees, (1, 99))),
        "trees for other classes",
    ),
    "other trees": (
        "boosted",
        attribute("estimators_", lambda trees: np.full_like(trees, LogisticRegression())),
        "is not of trees",
    ),
    "another start": (
        "boosted",
        attribute("init_", lambda _: LogisticRegression()),
        "starts with a LogisticRegression",
    ),
    "boosted, fewer features": ("boosted", attribute("n_features_in_", lambda _: 2), "other rec"),
    "bins, a child beyond": ("histograms", bins_of(left=10**9), "leads to nodes"),
    "bins, a column beyond": ("histograms", bins_of(feature_idx=3), "asks about columns"),
    "bins, categories": ("histograms", bins_of(is_categorical=1), "where there are none"),
    "bins, fewer features": ("histograms", attribute("n_features_in_", lambda _: 2), "other rec"),
    "bins, in training": ("histograms", attribute("_in_fit", lambda _: True), "changes its rec"),
    "records beyond": ("box", neighbours_of(1, lambda order: order + 10**9), "orders records"),
    "a ball of records": ("ball", neighbours_of(1, lambda order: order[:9]), "orders records"),
    "fewer nodes": ("box", neighbours_of(2, lambda nodes: nodes[:3].copy()), "has other nodes"),
    "more levels": ("box", neighbours_of(5, lambda levels: levels + 9), "has other nodes"),
    "other bounds": ("box", neighbours_of(3, lambda one: one[:1].copy()), "for other records"),
    "no leaves": ("box", neighbours_of(2, bent), "leads to nodes"),
    "votes beyond": ("brute", attribute("_y", lambda y: y + 10**9), "neighbours of classes"),
    "fewer votes": ("radius", attribute("_y", lambda y: y[:9]), "neighbours of classes"),
    "fewer coefficients": ("vectors", attribute("_dual_coef_", lambda c: c[:1]), "coefficients"),
    "narrow vectors": (
        "vectors",
        attribute("support_vectors_", lambda one: one[:, :1].copy()),
        "vectors for other records",
    ),
    "more vectors": ("vectors", attribute("_n_support", lambda n: n + 9), "of other classes"),
    "no constants": ("regression", attribute("_intercept_", lambda one: one[:0]), "decides betw"),
    "a kernel beyond": ("vectors", attribute("kernel", lambda _: "precomputed"), "asks about col"),
    "many threads": ("forest", attribute("n_jobs", lambda _: 100_000), "asks for 100000 threads"),
    "no such threads": ("box", attribute("n_jobs", lambda _: "all"), "lacks what its type has"),
    "its own method": ("tree", attribute("_validate_X_predict", lambda _: np.add), "its own '_v"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGES)
def test_what_no_training_makes_is_refused(case: str, tmp_path: Path) -> None:
    name, damage, why = DAMAGES[case]
    model = SOUND[name].__class__(**SOUND[name].get_params()).fit(X, Y)
    damage(model)
    skops.io.dump(model, tmp_path / "model.skops")
    with pytest.raises(UntrustedFileError, match=f"holds an? .*{why}.*could crash the program"):
        load_model(tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops", trust_pickle=True) is not None


def test_a_tree_by_itself_is_refused(tmp_path: Path) -> None:
    tree = DecisionTreeClassifier().fit(X, Y).tree_
    skops.io.dump(make_pipeline(StandardScaler(), "passthrough"), tmp_path / "good.skops")
    load_model(tmp_path / "good.skops")
    pipeline = make_pipeline(StandardScaler(), "passthrough")
    pipeline.steps[1] = ("tree", tree)
    skops.io.dump(pipeline, tmp_path / "model.skops")
    with pytest.raises(UntrustedFileError, match="holds a Tree that belongs to no model"):
        load_model(tmp_path / "model.skops")


def test_threads_under_another_name(tmp_path: Path) -> None:
    model = LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(X, Y)
    skops.io.dump(model, tmp_path / "model.skops")
    np.testing.assert_allclose(asked(load_model(tmp_path / "model.skops")), asked(model))
    model.set_params(num_threads=100_000)
    skops.io.dump(model, tmp_path / "model.skops")
    with pytest.raises(UntrustedFileError, match="a LGBMClassifier that asks for 100000 threads"):
        load_model(tmp_path / "model.skops")
