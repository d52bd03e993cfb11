"""Boosters of XGBoost and LightGBM in skops files, looked at before their libraries read them.

A Booster in a skops file is a dict, whose "handle" (XGBoost) or "_handle" (LightGBM) is the model
as its library writes it, and goes to compiled code as the file is loaded. That no part of the file
stands for another was looked at before, in skops_files.py.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any

from leakscope.models.sound_lightgbm import refuse_unsound_lightgbm
from leakscope.models.sound_trees import Unsound
from leakscope.models.sound_xgboost import refuse_unsound_xgboost

BOOSTERS = ("lightgbm.basic", "xgboost.core")
HANDLES = ("handle", "_handle")


def refuse_unsound_boosters(archive: zipfile.ZipFile, nodes: list[dict[str, Any]]) -> None:
    """Refuse boosters that no training makes, and states that are not plainly to be seen."""
    boosters = [node for node in nodes if node["__module__"] in BOOSTERS]
    if not boosters:
        return
    if any(node.get("content", {}).get("__loader__") != "DictNode" for node in boosters):
        raise Unsound("has no state")
    for node in nodes:
        if node["__loader__"] == "BytearrayNode":
            refuse_unsound_xgboost(archive.read(node["file"]))
        if node["__loader__"] == "DictNode":
            for name in HANDLES:
                _refuse_handle(node["content"].get(name))


def _refuse_handle(handle: dict[str, Any] | None) -> None:
    """A handle is bytes of XGBoost, which were looked at, a text of LightGBM, or nothing."""
    if handle is None or handle["__loader__"] == "BytearrayNode":
        return
    held = json.loads(handle["content"]) if handle["__loader__"] == "JsonNode" else 0
    if isinstance(held, str):
        refuse_unsound_lightgbm(held)
    elif held is not None:
        raise Unsound("has a state of another type")
