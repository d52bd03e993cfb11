"""Whether a model of XGBoost, as its file holds it, is one that training makes.

XGBoost (3.2) checks how long most arrays are, and follows the places in them unchecked, some of
them already as it reads the file. So the file is read here first.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.models.sound_trees import Unsound, refuse_no_tree, refuse_other_columns
from leakscope.models.ubjson import read_ubjson
from leakscope.records.unpacking import most_unpacked

MOST_CATEGORIES = 2**24  # beyond, a float does not hold every whole number, and XGBoost refuses
NO_PARENT = (-1, 2**31 - 1)

# Arrays with one number for each node.
_OF_NODES = (
    "base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children",
    "split_conditions", "split_indices", "split_type", "sum_hessian",
)  # fmt: skip


def refuse_unsound_xgboost(content: bytes) -> None:
    """Refuse a model, as JSON or universal binary JSON, with its configuration or without."""
    try:
        model = _read(content)
        # Where it was saved with all that training needs, as in a pickle or a skops file.
        learner = model.get("Model", model)["learner"]
        _refuse_learner(learner, most_unpacked(len(content)))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unsound("is no model of XGBoost, or a damaged one") from error


def _read(content: bytes) -> Any:
    """JSON has a quote or a space after its first brace, and binary JSON the type of a length."""
    if content[1:2].isspace() or content[1:2] == b'"':
        return json.loads(content, object_pairs_hook=_once)
    return read_ubjson(content)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without two values for one name, of which XGBoost might take the other."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _whole(numbers: Any) -> NDArray[np.int64]:
    """An array of whole numbers, (n,)."""
    found = np.asarray(numbers)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        raise Unsound("has other numbers where there are places")
    return found.astype(np.int64)


def _refuse_learner(learner: dict[str, Any], most: int) -> None:
    told = learner["learner_model_param"]
    features = int(told["num_feature"])
    groups = max(1, int(told["num_class"]), int(told.get("num_target", 1)))
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        if len(booster["model"]["weights"]) != (features + 1) * groups:
            raise Unsound("has weights for other records")
        return
    model = booster.get("gbtree", booster)["model"]  # dart holds a gbtree
    trees, of_group = model["trees"], _whole(model["tree_info"])
    counted = {len(of_group), len(booster.get("weight_drop", of_group))}
    if counted != {len(trees)} or int(model["gbtree_model_param"]["num_trees"]) != len(trees):
        raise Unsound("has other trees than it says")
    if not (of_group.size and of_group.min() >= 0 and of_group.max() < groups <= len(trees)):
        raise Unsound("has trees for other classes")
    _refuse_steps(_whole(model.get("iteration_indptr", [0, len(trees)])), len(trees))
    if sum(_refuse_tree(tree, features) for tree in trees) > most:
        raise Unsound("has categories that would fill the memory")
    _refuse_categories(model.get("cats", {}))


def _refuse_steps(steps: NDArray[np.int64], end: int) -> None:
    """Refuse places that do not go from nothing to the end."""
    if len(steps) == 0 or steps[0] != 0 or steps[-1] != end or (np.diff(steps) < 0).any():
        raise Unsound("is cut into other parts than it has")


def _refuse_tree(tree: dict[str, Any], features: int) -> int:
    """Refuse a tree that leads elsewhere; how many bytes its sets of categories take."""
    told = tree["tree_param"]
    n = int(told["num_nodes"])
    if int(told["size_leaf_vector"]) not in (0, 1):
        raise Unsound("has several numbers in a leaf, which is not read from a file")
    if any(len(tree[name]) != n for name in _OF_NODES if name in tree):
        raise Unsound("has other nodes than it says")
    left, right = _whole(tree["left_children"]), _whole(tree["right_children"])
    refuse_no_tree(left, right)
    if left.min() < -1 or right.min() < -1 or right.max() >= n:
        raise Unsound("leads to nodes that it has not")
    inner = left >= 0
    refuse_other_columns(_whole(tree["split_indices"])[inner], features)
    parents = _whole(tree["parents"])
    if parents[0] not in NO_PARENT or (parents[1:] < 0).any() or (parents[1:] >= n).any():
        raise Unsound("has nodes without a parent")
    names = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    held, nodes, start, size = (_whole(tree.get(name, [])) for name in names)
    by_category = np.flatnonzero(inner & (_whole(tree.get("split_type", np.zeros(n, int))) != 0))
    if not np.array_equal(nodes, by_category) or not len(nodes) == len(start) == len(size):
        raise Unsound("splits by categories in other nodes than it says")
    if (start < 0).any() or (size < 1).any() or (start + size > len(held)).any():
        raise Unsound("splits by categories that it does not list")
    if held.size and (held.min() < 0 or held.max() >= MOST_CATEGORIES):
        raise Unsound("splits by categories that no column has")
    return sum(int(held[s : s + n].max()) // 8 for s, n in zip(start, size, strict=True))


def _refuse_categories(cats: dict[str, Any]) -> None:
    """The categories of training: of each column its values, and their order."""
    held = cats.get("enc", [])
    if not held:
        return
    steps, order = _whole(cats["feature_segments"]), _whole(cats["sorted_idx"])
    _refuse_steps(steps, len(order))
    if len(steps) != len(held) + 1:
        raise Unsound("has categories of other columns")
    for one, (start, end) in zip(held, pairwise(steps), strict=True):
        n = len(one["values"])
        if "offsets" in one:  # texts, one after the other
            ends = _whole(one["offsets"])
            n = max(0, len(ends) - 1)
            if n:
                _refuse_steps(ends, len(one["values"]))
        if n != end - start or not np.array_equal(np.sort(order[start:end]), np.arange(n)):
            raise Unsound("has categories in an order that they have not")
