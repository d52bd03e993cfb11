"""Models from skops files: what a file may hold, and how each part of it may be put together.

A skops file is an archive of arrays and of one text, schema.json: a tree of nodes, each with a
class and a loader, that is, the way in which skops puts it together. skops checks the classes
alone. Some loaders call a class with whatever arguments the file names, so that a class that only
holds numbers could be made to open a file; so each class that skops does not know itself has its
own loader here. What was loaded is looked through in soundness.py.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leakscope.errors import InputError, UntrustedFileError
from leakscope.models.skops_boosters import refuse_unsound_boosters
from leakscope.models.sound_trees import Unsound
from leakscope.models.soundness import refuse_unsound, refused
from leakscope.records import unpacking
from leakscope.records.checks import listed, shown

# Classes of scikit-learn, XGBoost and LightGBM that skops leaves to its user to trust, and the
# loaders that may put them together. They hold arrays and numbers, and these loaders call nothing
# but themselves; without them no tree, no forest and no nearest neighbours would load.
_STATE = {"ObjectNode"}
HOLD_NUMBERS = {
    "collections.OrderedDict": {"DictNode", "TypeNode"},
    "lightgbm.basic.Booster": _STATE,
    "lightgbm.sklearn.LGBMClassifier": _STATE,
    "lightgbm.sklearn.LGBMRegressor": _STATE,
    "numpy.dtype": {"DTypeNode"},
    "sklearn._loss.loss.HalfTweedieLossIdentity": _STATE,
    "sklearn.calibration._CalibratedClassifier": _STATE,
    "sklearn.calibration._SigmoidCalibration": _STATE,
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": _STATE,
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace": _STATE,
    "sklearn.gaussian_process.kernels.ConstantKernel": _STATE,
    "sklearn.gaussian_process.kernels.Product": _STATE,
    "sklearn.gaussian_process.kernels.RBF": _STATE,
    "sklearn.metrics._dist_metrics.EuclideanDistance64": _STATE,
    "sklearn.neighbors._ball_tree.BallTree": _STATE,
    "sklearn.neighbors._kd_tree.KDTree": _STATE,
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer": _STATE,
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer": _STATE,
    "sklearn.tree._tree.Tree": {"TreeNode"},
    "xgboost.core.Booster": _STATE,
    "xgboost.sklearn.XGBClassifier": _STATE,
    "xgboost.sklearn.XGBRFClassifier": _STATE,
    "xgboost.sklearn.XGBRFRegressor": _STATE,
    "xgboost.sklearn.XGBRegressor": _STATE,
}

SCHEMA = "schema.json"
# A tree of a forest takes 16 KB of it. As objects of Python it takes up to 24 times its size.
LONGEST_SCHEMA = 2**27
# skops makes a list of the bytes of a bytearray, at eight bytes for each, beside the bytes.
BYTEARRAY = 9


def read_skops(path: Path, trust: bool) -> Any:
    """The model in a skops file of known types, whose numbers are such as training makes."""
    from skops.io import get_untrusted_types, load

    with zipfile.ZipFile(path) as archive:
        refuse_bomb(path, sum(member.file_size for member in archive.infolist()))
        nodes, weights = _parts(_schema(path, archive))
        refuse_bomb(path, _unpacked(archive, path, nodes))
    _refuse_stand_ins(path, nodes, weights)
    held = get_untrusted_types(file=path)
    if trust:
        return load(path, trusted=held)
    unknown = [one for one in held if one not in HOLD_NUMBERS]
    if unknown:
        raise UntrustedFileError(
            f"The model file {str(path)!r} holds types that are not known to be safe: "
            f"{listed(unknown)}; pass --trust-pickle (trust_pickle=True), which trusts any file, "
            "if you made it yourself"
        )
    for node in nodes:
        _refuse_other_loader(path, node)
    _refuse_boosters(path, nodes)
    model = load(path, trusted=held)
    refuse_unsound(model, path)
    return model


def refuse_bomb(path: Path, unpacked: int) -> None:
    """Refuse an archive, as skops's and torch's files are, that would fill the memory."""
    if unpacked > unpacking.most_unpacked(path.stat().st_size):
        raise UntrustedFileError(
            f"The model file {str(path)!r} would unpack to {unpacked / 2**30:.1f} GiB, more than "
            f"{unpacking.SWELLS} times its size; save the model again"
        )


def _schema(path: Path, archive: zipfile.ZipFile) -> Any:
    size = archive.getinfo(SCHEMA).file_size
    if size > max(LONGEST_SCHEMA, path.stat().st_size):
        raise UntrustedFileError(
            f"The model file {str(path)!r} has a description of {size:,} bytes, which would fill "
            "the memory; save the model again"
        )
    return json.loads(archive.read(SCHEMA))


def _parts(schema: Any) -> tuple[list[dict[str, Any]], list[int]]:
    """Every part of a schema that skops may put together, and of how many such each is made."""
    found, left = [], [schema]
    while left:
        one = left.pop()
        found.append(one)
        left.extend(part for part in _inside(one) if isinstance(part, (dict, list)))
    weights: dict[int, int] = {}
    for one in reversed(found):  # what is inside comes after what it is in
        weights[id(one)] = _is_node(one) + sum(weights.get(id(part), 0) for part in _inside(one))
    nodes = [one for one in found if _is_node(one)]
    return nodes, [weights[id(node)] for node in nodes]


def _inside(one: Any) -> Iterable[Any]:
    return one.values() if isinstance(one, dict) else one


def _is_node(one: Any) -> bool:
    """Whether skops may put it together: with a loader, or by the id of another that has one."""
    by_id = isinstance(one, dict) and isinstance(one.get("__id__"), (int, float, str))
    return by_id or (isinstance(one, dict) and "__loader__" in one)


def _refuse_stand_ins(path: Path, nodes: list[dict[str, Any]], weights: list[int]) -> None:
    """Refuse a part that stands for another: skops takes the first with an id for all of them.

    What looks harmless would be something else; and parts made of two others that are one, sixty
    times over, would be looked through for centuries.
    """
    known: dict[Any, Any] = {}
    for node, weight in zip(nodes, weights, strict=True):
        loader, name = node.get("__loader__", "CachedNode"), node.get("__id__")
        text = node.get("content") if loader == "JsonNode" else None
        sort = (loader, node.get("__module__"), node.get("__class__"), weight, text)
        if loader == "CachedNode" or (name and known.setdefault(name, sort) != sort):
            raise UntrustedFileError(
                f"The model file {str(path)!r} has a part that stands for another, as skops writes "
                "none; save the model again"
            )


def _unpacked(archive: zipfile.ZipFile, path: Path, nodes: list[dict[str, Any]]) -> int:
    """How many bytes all arrays take: of several nodes with one id skops reads only one."""
    by_id: dict[int, int] = {}
    without = 0
    for node in nodes:
        if "file" in node:
            size, name = _size(archive, path, node), node.get("__id__")
            if name and isinstance(name, int):
                by_id[name] = max(size, by_id.get(name, 0))
            else:
                without += size
    return without + sum(by_id.values())


def _size(archive: zipfile.ZipFile, path: Path, node: dict[str, Any]) -> int:
    """How many bytes of memory the array of a node takes, which its member must bear out."""
    member = archive.getinfo(node["file"])
    if node.get("__loader__") != "NdArrayNode":
        return BYTEARRAY * member.file_size
    with archive.open(member) as stream:
        shape, dtype = unpacking.npy_header(stream)
    size = unpacking.array_size(shape, dtype)
    if size > member.file_size or (dtype.itemsize == 0 and 0 not in shape):
        raise InputError(
            f"The model file {str(path)!r} has an array that says it holds {dtype!s:.60} of shape "
            f"{shape!s:.60} in {member.file_size:,} bytes; save the model again"
        )
    return member.file_size


def _refuse_boosters(path: Path, nodes: list[dict[str, Any]]) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_unsound_boosters(archive, nodes)
    except Unsound as error:
        raise refused(path, "Booster", str(error)) from error


def _refuse_other_loader(path: Path, node: dict[str, Any]) -> None:
    """Refuse a class of the list above that the file would have put together in another way."""
    loader = node["__loader__"]
    name = f"{node.get('__module__')}.{node.get('__class__')}"
    if loader == "SparseMatrixNode":  # an archive in the archive, whose indices nobody checks
        raise UntrustedFileError(
            f"The model file {str(path)!r} holds a sparse matrix, whose numbers could crash the "
            "program; save the model with dense arrays, or pass --trust-pickle (trust_pickle=True) "
            "if you made it yourself"
        )
    if loader not in HOLD_NUMBERS.get(name, {loader}):
        raise UntrustedFileError(
            f"The model file {str(path)!r} has {name} put together by {shown(loader)}, which could "
            "call it with anything; pass --trust-pickle (trust_pickle=True), which trusts any "
            "file, if you made it yourself"
        )
