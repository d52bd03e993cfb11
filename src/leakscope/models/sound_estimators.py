"""Whether estimators of scikit-learn from a file are such as training makes.

Each check takes one estimator, looks at the arrays that its compiled code follows without looking
itself (scikit-learn 1.9), and returns the trees in it that are now known to be sound. An estimator
that was not fitted passes: it does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leakscope.models.sound_trees import Unsound, refuse_no_tree, refuse_other_columns

CATEGORY_WORDS = 8  # numbers of 32 bits, which hold a bit for each of 256 categories
CONSTANTS = ("DummyClassifier", "DummyRegressor")


def _features(model: Any) -> int:
    number = model.n_features_in_
    if not isinstance(number, (int, np.integer)):
        raise Unsound("does not say how many features its records have")
    return int(number)


def _tree(model: Any) -> list[Any]:
    """A tree, by itself or one of a forest."""
    from sklearn.tree._tree import Tree

    if "tree_" not in vars(model):
        return []
    tree, features = model.tree_, _features(model)
    if type(tree) is not Tree or tree.n_features != features or tree.node_count < 1:
        raise Unsound("has no tree for its records")
    left = tree.children_left
    refuse_no_tree(left, tree.children_right)
    refuse_other_columns(tree.feature[left >= 0], features)
    return [tree]


def _boosted(model: Any) -> list[Any]:
    """Gradient boosting: its trees are of its records, in one column for each number it answers."""
    if "estimators_" not in vars(model):
        return []
    trees, features = model.estimators_, _features(model)
    if trees.ndim != 2 or any(type(one).__name__ != "DecisionTreeRegressor" for one in trees.flat):
        raise Unsound("is not of trees")
    if any("tree_" not in vars(one) or one.n_features_in_ != features for one in trees.flat):
        raise Unsound("has trees for other records")
    start = model.init_
    if not isinstance(start, str) and type(start).__name__ not in CONSTANTS:
        raise Unsound(f"starts with a {type(start).__name__:.60} in place of a constant")
    if model._raw_predict_init(np.zeros((1, features), dtype=np.float32)).shape != trees[:1].shape:
        raise Unsound("has trees for other classes")
    return []


def _histograms(model: Any) -> list[Any]:
    """Histogram gradient boosting: trees as structured arrays, with sets of categories."""
    if "_predictors" not in vars(model):
        return []
    features = _features(model)
    if getattr(model, "_preprocessor", None) is not None or getattr(model, "_in_fit", False):
        raise Unsound("changes its records before it answers")
    categorical = np.asarray(model._bin_mapper.is_categorical_, dtype=bool)
    if categorical.shape != (features,):
        raise Unsound("has bins for other records")
    trees = [tree for stage in model._predictors for tree in stage]
    for tree in trees:
        nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
        leaf = nodes["is_leaf"] != 0
        # Numbers without a sign, which are 0 in a leaf.
        left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
        refuse_no_tree(np.where(leaf, -1, left), right)
        inner = nodes[~leaf]
        refuse_other_columns(inner["feature_idx"], features)
        asked = inner[inner["is_categorical"] != 0]
        if not categorical[asked["feature_idx"]].all():
            raise Unsound("splits by categories where there are none")
        if sets.shape[1] != CATEGORY_WORDS or (asked["bitset_idx"] >= len(sets)).any():
            raise Unsound("splits by categories that it does not list")
    return trees


def _neighbours(tree: Any) -> list[Any]:
    """A tree of neighbours: all nodes of a binary tree, each a range in an order of the records."""
    data, order, nodes, bounds, _, levels, n_nodes, *_, metric, weights = tree.__getstate__()
    if any(one is None for one in (data, order, nodes, bounds, metric)):
        raise Unsound("lacks a part")
    n, features = data.shape
    kinds = 2 if type(tree).__name__.startswith("KD") else 1  # a box, or the centre of a ball
    if n_nodes != len(nodes) or n_nodes != 2**levels - 1:
        raise Unsound("has other nodes than it says")
    if bounds.shape != (kinds, n_nodes, features) or (weights is not None and len(weights) != n):
        raise Unsound("has nodes for other records")
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise Unsound("orders records that it has not")
    start, end = nodes["idx_start"], nodes["idx_end"]
    if start.min() < 0 or end.max() > n or (start > end).any():
        raise Unsound("leads to records that it has not")
    if not nodes["is_leaf"][n_nodes // 2 :].all():
        raise Unsound("leads to nodes that it has not")
    return []


def _votes(model: Any) -> list[Any]:
    """Neighbours that vote: each record of training has one of the classes."""
    if "_y" in vars(model) and not model.outputs_2d_:
        votes = np.asarray(model._y)
        if len(votes) != len(model._fit_X) or votes.min() < 0 or votes.max() >= len(model.classes_):
            raise Unsound("has neighbours of classes that it has not")
    return []


def _vectors(model: Any) -> list[Any]:
    """A support vector machine: a coefficient for each vector, a constant for each two classes."""
    if "support_" not in vars(model):
        return []
    features, n = _features(model), len(model.support_)
    if model.kernel == "precomputed":  # then the columns are records of training
        refuse_other_columns(model.support_, features)
    elif model.support_vectors_.shape != (n, features):
        raise Unsound("has vectors for other records")
    classes = len(model._n_support)  # a regression has two counts
    pairs = classes * (classes - 1) // 2
    if model._sparse or model._dual_coef_.shape != (classes - 1, n):
        raise Unsound("has coefficients for other vectors")
    if model._n_support.min() < 0 or model.n_support_.sum() != n:
        raise Unsound("has vectors of other classes")
    counted = {len(model._probA), len(model._probB)}
    if len(model._intercept_) != pairs or counted not in ({0}, {pairs}):
        raise Unsound("decides between other classes")
    return []


# By the name of a class, its own or one that it is derived from.
CHECKS: dict[str, Callable[[Any], list[Any]]] = {
    "BaseDecisionTree": _tree,
    "BaseGradientBoosting": _boosted,
    "BaseHistGradientBoosting": _histograms,
    "BaseLibSVM": _vectors,
    "BinaryTree64": _neighbours,
    "KNeighborsClassifier": _votes,
    "RadiusNeighborsClassifier": _votes,
}
