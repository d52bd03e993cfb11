"""Whether a model of LightGBM, the text that its file holds, is one that training makes.

LightGBM (4.7) ends the whole program where a tree is damaged, and follows the places in it
unchecked. So the text is read here first.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leakscope.models.sound_trees import Unsound, refuse_no_tree, refuse_other_columns

START, END = "Tree=", "end of trees"
CATEGORICAL = 1  # a bit of decision_type
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*(e[-+]?\d+)?|nan|inf)", re.ASCII)

# Lines with one number for each leaf, and for each other node.
_OF_LEAVES = ("leaf_weight", "leaf_count")
_OF_NODES = (
    "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child",
    "internal_value", "internal_weight", "internal_count",
)  # fmt: skip
_NEEDED = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


def refuse_unsound_lightgbm(text: str) -> None:
    """Refuse a model in LightGBM's own format, with Unix's line breaks or Windows's."""
    try:
        head, trees = _parts(text)
        features, per_round = int(head["max_feature_idx"]) + 1, int(head["num_tree_per_iteration"])
        classes = {int(head["num_class"])}
        objective = head.get("objective", "none")
        classes |= {int(number) for number in re.findall(r"num_class:(\d+)", objective)}
        if classes != {per_round} or per_round < 1 or not trees or len(trees) % per_round:
            raise Unsound("has trees for other classes")
        if not objective.strip() or not features == len(head["feature_names"].split()):
            raise Unsound("does not say what it answers, or about which columns")
        if len(head["feature_infos"].split()) != features:
            raise Unsound("has infos of other columns")
        for tree in trees:
            _refuse_tree(_lines(f"{START}{tree}", plain=True), features)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise Unsound("is no model of LightGBM, or a damaged one") from error


def _parts(text: str) -> tuple[dict[str, str], list[str]]:
    """The lines of the head by name, and the text of each tree."""
    head, start, rest = text.partition(f"\n{START}")
    rest, end, _ = rest.partition(f"\n{END}")
    told = _lines(head)
    if not start or not end:
        raise Unsound("is cut short")
    trees = re.split(rf"^{START}", START + rest + "\n", flags=re.MULTILINE)[1:]
    if "tree_sizes" in told:  # in bytes, each from one beginning to the next
        sizes = [len(f"{START}{tree}".encode()) for tree in trees]
        if told["tree_sizes"].split() != [str(size) for size in sizes]:
            raise Unsound("has trees of other sizes than it says")
    return told, trees


def _lines(text: str, plain: bool = False) -> dict[str, str]:
    """What stands behind the names of the lines; plain: where all lines must be such."""
    found: dict[str, str] = {}
    for line in filter(None, re.split("\r?\n", text)):
        name, _, value = line.partition("=")
        if name in found or (plain and line.count("=") != 1):
            raise Unsound("has a line that stands twice, or is none")
        found[name] = value
    return found


def _numbers(told: str) -> list[float]:
    """The numbers of a line, as LightGBM writes and reads them: with nothing but spaces between."""
    words = [word for word in told.removesuffix("\r").split(" ") if word]
    if not all(_NUMBER.fullmatch(word) for word in words):
        raise Unsound("has something else where there are numbers")
    return [float(word) for word in words]


def _whole(told: str) -> NDArray[np.int64]:
    found = np.array(_numbers(told), dtype=np.float64)
    if not (np.isfinite(found).all() and (np.trunc(found) == found).all()):
        raise Unsound("has other numbers where there are places")
    return found.astype(np.int64)


def _refuse_tree(tree: dict[str, str], features: int) -> None:
    (leaves,), (categories,) = _whole(tree["num_leaves"]), _whole(tree["num_cat"])
    nodes = leaves - 1
    if leaves < 1 or categories < 0:
        raise Unsound("has fewer than no leaves")
    _refuse_count(tree, "shrinkage", 1)
    _refuse_count(tree, "leaf_value", leaves)
    if not nodes:  # then nothing else is read
        return
    for names, n in ((_OF_LEAVES, leaves), (_OF_NODES, nodes)):
        for name in names:
            if name in tree or name in _NEEDED:
                _refuse_count(tree, name, n)
    left, right = _whole(tree["left_child"]), _whole(tree["right_child"])
    if min(left.min(), right.min()) < -leaves or max(left.max(), right.max()) >= nodes:
        raise Unsound("leads to nodes that it has not")
    # Leaves are numbers below zero here; behind the nodes they are as others write them.
    sides = (np.where(side >= 0, side, nodes - 1 - side) for side in (left, right))
    refuse_no_tree(*(np.concatenate([side, np.full(leaves, -1)]) for side in sides))
    refuse_other_columns(_whole(tree["split_feature"]), features)
    _refuse_categories(tree, categories)
    _refuse_linear(tree, leaves, features)


def _refuse_count(tree: dict[str, str], name: str, n: int) -> None:
    found = len(_numbers(tree[name]))
    if found != n:
        raise Unsound(f"has {found} numbers in {name} where there are {n}")


def _refuse_categories(tree: dict[str, str], categories: int) -> None:
    """Splits by categories name a set of them, which is a part of a list of bits."""
    asked = (_whole(tree["decision_type"]) & CATEGORICAL) != 0
    places = _numbers(tree["threshold"])
    if any(not 0 <= place < categories for place, yes in zip(places, asked, strict=True) if yes):
        raise Unsound("splits by categories that it does not list")
    if categories:
        steps, bits = _whole(tree["cat_boundaries"]), _whole(tree["cat_threshold"])
        wrong = len(steps) != categories + 1 or steps[0] != 0 or steps[-1] != len(bits)
        if wrong or (np.diff(steps) < 0).any():
            raise Unsound("splits by categories that it does not list")


def _refuse_linear(tree: dict[str, str], leaves: int, features: int) -> None:
    """Leaves with a linear model in each: of some columns, with a coefficient for each."""
    if tree.get("is_linear", "0").strip() == "0":
        return
    counts, columns = _whole(tree["num_features"]), _whole(tree["leaf_features"])
    weights, constants = _numbers(tree["leaf_coeff"]), _numbers(tree["leaf_const"])
    if len(constants) != leaves or len(counts) != leaves or counts.min() < 0:
        raise Unsound("has linear models in other leaves than it says")
    if not counts.sum() == len(columns) == len(weights):
        raise Unsound("has linear models of other columns than it says")
    refuse_other_columns(columns, features)
