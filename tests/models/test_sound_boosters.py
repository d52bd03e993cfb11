"""Models of XGBoost and LightGBM that would crash the program as they are read, or asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from leakscope.errors import InputError
from leakscope.models import load_model
from leakscope.models.sound_lightgbm import refuse_unsound_lightgbm
from leakscope.models.sound_xgboost import refuse_unsound_xgboost

N = 300
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc"))
X["town"] = pd.Categorical(RNG.choice(["Aix", "Bonn", "Cork"], N))
Y = RNG.integers(0, 3, N)
NUMBERS = X[["a", "b"]]


def xgb(frame: pd.DataFrame = X, **options: Any) -> xgboost.Booster:
    options = {"max_cat_to_onehot": 1, "nthread": 1, "verbosity": 0, **options}
    y = Y if "num_class" in options else Y > 0
    return xgboost.train(options, xgboost.DMatrix(frame, y, enable_categorical=True), 3)


def lgb(frame: pd.DataFrame = X, **options: Any) -> lightgbm.Booster:
    options = {"num_leaves": 6, "num_threads": 1, "verbose": -1, **options}
    y = Y if "num_class" in options else Y > 0
    return lightgbm.train(options, lightgbm.Dataset(frame, y), 3)


MULTI = {"objective": "multi:softprob", "num_class": 3}
SEVERAL = {"objective": "multiclass", "num_class": 3}


@pytest.mark.parametrize(
    "options",
    [
        MULTI,
        {"objective": "binary:logistic", "num_parallel_tree": 2},
        {"booster": "dart", "rate_drop": 0.5},
        {"booster": "gblinear", "frame": NUMBERS},
        {"gamma": 2.0, "tree_method": "exact", "frame": NUMBERS},
        {"grow_policy": "lossguide", "max_leaves": 5},
    ],
    ids=str,
)
def test_what_xgboost_made_is_read(options: dict[str, Any]) -> None:
    booster = xgb(**options)
    for content in (*map(booster.save_raw, ("json", "ubj")), booster.__getstate__()["handle"]):
        refuse_unsound_xgboost(bytes(content))


@pytest.mark.parametrize(
    "options",
    [
        SEVERAL,
        {"objective": "binary", "boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"linear_tree": True, "frame": NUMBERS},
        {"min_data_in_leaf": 10_000},
        {"num_leaves": 2},
    ],
    ids=str,
)
def test_what_lightgbm_made_is_read(options: dict[str, Any]) -> None:
    refuse_unsound_lightgbm(lgb(**options).model_to_string())


def put(*place: Any) -> Callable[[dict[str, Any]], None]:
    """Write the last of these into the model, at the place that the others name."""
    *path, name, value = place

    def damage(model: dict[str, Any]) -> None:
        part = model["learner"]
        for one in path:
            part = part[one]
        part[name] = value

    return damage


MODEL = ("gradient_booster", "model")
TREE = (*MODEL, "trees", 0)
HUGE = 10**6

XGBOOST: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a child beyond": (put(*TREE, "left_children", 0, HUGE), "leads to nodes"),
    "a right child beyond": (put(*TREE, "right_children", 0, HUGE), "leads to nodes"),
    "a child below zero": (put(*TREE, "left_children", 0, -9), "leads to nodes"),
    "a circle": (put(*TREE, "right_children", 0, 0), "leads to nodes"),
    "one child twice": (put(*TREE, "right_children", 0, 1), "one node in two ways"),
    "a column beyond": (put(*TREE, "split_indices", 0, HUGE), "asks about columns"),
    "a parent beyond": (put(*TREE, "parents", 1, HUGE), "without a parent"),
    "no root": (put(*TREE, "parents", 0, 5), "without a parent"),
    "large leaves": (put(*TREE, "tree_param", "size_leaf_vector", "70"), "numbers in a leaf"),
    "more nodes": (put(*TREE, "tree_param", "num_nodes", "70"), "other nodes than it says"),
    "a class beyond": (put(*MODEL, "tree_info", 0, HUGE), "trees for other classes"),
    "more classes": (put("learner_model_param", "num_class", "99"), "trees for other classes"),
    "fewer trees": (put(*MODEL, "tree_info", [0]), "other trees than it says"),
    "other rounds": (put(*MODEL, "iteration_indptr", 1, HUGE), "cut into other parts"),
    "texts beyond": (put(*MODEL, "cats", "enc", 3, "offsets", 1, HUGE), "cut into other parts"),
    "no such order": (put(*MODEL, "cats", "sorted_idx", 0, HUGE), "in an order"),
    "other columns": (put(*MODEL, "cats", "feature_segments", [0, 3]), "of other columns"),
    "a place that is none": (put(*TREE, "left_children", 0, 1.5), "other numbers"),
    "no parts": (put("gradient_booster", {}), "or a damaged one"),
    "a text": (put(*MODEL, "trees", "x"), "other trees than it says"),
}


def split_by_town(model: dict[str, Any]) -> dict[str, Any]:
    trees: list[dict[str, Any]] = model["learner"]["gradient_booster"]["model"]["trees"]
    return next(tree for tree in trees if tree["categories"])


CATEGORIES: dict[str, tuple[str, int, str]] = {
    "a part beyond": ("categories_segments", HUGE, "that it does not list"),
    "a large part": ("categories_sizes", HUGE, "that it does not list"),
    "another node": ("categories_nodes", HUGE, "in other nodes than it says"),
    "a category beyond": ("categories", 2**31 - 1, "that no column has"),
}


@pytest.mark.parametrize("case", [*XGBOOST, *CATEGORIES])
def test_a_model_of_xgboost_that_would_crash_is_refused(case: str, tmp_path: Path) -> None:
    model = json.loads(xgb(**MULTI).save_raw("json"))
    if case in XGBOOST:
        damage, why = XGBOOST[case]
        damage(model)
    else:
        name, number, why = CATEGORIES[case]
        split_by_town(model)[name][0] = number
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    with pytest.raises(InputError, match=rf"read by XGBoost \(the model .*{why}.*save_model$"):
        load_model(path)


def test_two_values_for_one_name_are_refused() -> None:
    content = bytes(xgb().save_raw("json")).replace(b'{"learner":', b'{"learner":{},"learner":')
    with pytest.raises(Exception, match="or a damaged one"):
        refuse_unsound_xgboost(content)


def line(name: str, value: str | None) -> Callable[[str], str]:
    """Replace what stands in the first line of this name, or take the line out."""
    new = "" if value is None else f"{name}={value}\n"
    return lambda text: re.sub(rf"^{name}=.*\n", lambda _: new, text, count=1, flags=re.MULTILINE)


def word(name: str, value: str) -> Callable[[str], str]:
    """Replace the first word of the first line of this name."""
    return lambda text: re.sub(rf"^({name}=)[^ \n]+", rf"\g<1>{value}", text, count=1, flags=re.M)


LIGHTGBM: dict[str, tuple[Callable[[str], str], str]] = {
    "sizes that lie": (word("tree_sizes", str(HUGE)), "of other sizes than it says"),
    "a child beyond": (word("left_child", str(HUGE)), "leads to nodes"),
    "a leaf beyond": (word("left_child", "-99"), "leads to nodes"),
    "a circle": (word("right_child", "0"), "leads to nodes"),
    "a column beyond": (word("split_feature", "4"), "asks about columns"),
    "more leaves": (line("num_leaves", str(HUGE)), "where there are"),
    "no leaves": (line("num_leaves", "0"), "fewer than no leaves"),
    "fewer numbers": (line("leaf_value", "1"), "numbers in leaf_value where there are"),
    "a line less": (line("threshold", None), "or a damaged one"),
    "a tab": (
        lambda text: re.sub(r"(?m)^(leaf_value=\S+) ", "\\1\t", text, count=1),
        "something el",
    ),
    "a line that is none": (line("shrinkage", "1\nx"), "or is none"),
    "a line twice": (line("shrinkage", "1\nshrinkage=1"), "stands twice"),
    "no such category": (
        lambda text: text.replace("num_cat=1", "num_cat=0"),
        "categories that it does not list",
    ),
    "categories beyond": (word("cat_boundaries", "7"), "categories that it does not list"),
    "other classes": (line("num_tree_per_iteration", "2"), "trees for other classes"),
    "another objective": (line("objective", "multiclass num_class:9"), "trees for other classes"),
    "no objective": (line("objective", ""), "does not say what it answers"),
    "other columns": (line("feature_infos", "none"), "infos of other columns"),
    "cut short": (lambda text: text[: len(text) // 3], "cut short"),
    "a text": (line("max_feature_idx", "x"), "or a damaged one"),
}


@pytest.mark.parametrize("case", LIGHTGBM)
def test_a_model_of_lightgbm_that_would_crash_is_refused(case: str, tmp_path: Path) -> None:
    damage, why = LIGHTGBM[case]
    text = lgb(**SEVERAL, min_data_per_group=1, cat_smooth=0).model_to_string()
    assert re.search("^num_cat=1", text, re.MULTILINE)
    damaged = damage(text)
    if "lie" not in case:  # its sizes are the first thing that is looked at
        damaged = line("tree_sizes", None)(damaged)
    path = tmp_path / "model.txt"
    path.write_text(damaged)
    with pytest.raises(InputError, match=rf"read by LightGBM \(the model .*{why}.*save_model$"):
        load_model(path)
