"""Models from files, safely: a model file is data from a stranger.

A pickle (and joblib's files are pickles) runs whatever code it holds when it is loaded, so it is
refused unless the user says that they trust it. skops files name the types they hold, and load
only when all of them are known: see skops_files.py. Weights of torch networks are numbers by name:
see torch_files.py; files of XGBoost and LightGBM are trees: see boosters.py. What a file is, its
first bytes tell, and not its name.
"""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.errors import InputError, LeakscopeError, UntrustedFileError
from leakscope.models.answers import first_line
from leakscope.models.boosters import START, kind_of_booster, read_booster
from leakscope.models.skops_files import read_skops, refuse_bomb

if TYPE_CHECKING:
    from leakscope.models.torch_files import Network, Weights

_LOG = logging.getLogger(__name__)

# How files of weights begin. torch's own are zip archives today, and once began with this number.
COMPACT = b"LSPARSE"
OLD_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
LENGTH = 8  # bytes of the length of a safetensors header, which is JSON


def load_model(
    path: str | Path, *, network: Network | None = None, trust_pickle: bool = False
) -> Any:
    """The model in a file: skops, XGBoost's and LightGBM's own, and torch weights; else if trusted.

    network: for a file of weights the network they belong to, a module, a function that makes one,
    or a text such as "mlp:104,50,50,2" or "lenet5:1,28,28,10".
    """
    from leakscope.models.torch_files import Weights, made_network

    found = open_model(path, trust_pickle=trust_pickle)
    if isinstance(found, Weights):
        if network is None:
            raise found.unnamed()
        return found.into(made_network(network))
    if network is not None:
        raise InputError(
            f"The model file {str(path)!r} holds a whole model and not the weights of a network; "
            "leave network= out"
        )
    return found


def open_model(path: str | Path, *, trust_pickle: bool = False) -> Any | Weights:
    """The model in a file, or the Weights of a network that is yet to be named."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; give the path of a model file")
    if path.exists() and not path.is_file():
        raise InputError(
            f"{str(path)!r} is a pipe or a device, and a model is read from a file; save it to one"
        )
    if not path.is_file():
        raise InputError(f"There is no model file {str(path)!r}; give the path of one")
    if path.stat().st_size == 0:
        raise InputError(f"The model file {str(path)!r} is empty; save the model again")
    try:
        kind = _kind(path)
        _LOG.info("reading %s as a %s file", path, kind)
        return _READERS[kind](path, trust_pickle)
    except LeakscopeError:
        raise
    except Exception as error:  # whatever a damaged or foreign file makes its reader raise
        raise InputError(
            f"The model file {str(path)!r} could not be read: {first_line(error)}; "
            "save it again with skops.io.dump, or a network's weights with "
            "safetensors.torch.save_model"
        ) from error


def _kind(path: Path) -> str:
    """What the content of a file says that it is."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = {*archive.namelist()}
        if "schema.json" in names:
            return "skops"
        # torch puts everything into one folder, whose name is the file's or any other.
        folders = {name.removesuffix("/data.pkl") for name in names if name.endswith("/data.pkl")}
        return "torch" if any(f"{folder}/version" in names for folder in folders) else "pickle"
    with path.open("rb") as file:
        start = file.read(max(len(OLD_TORCH), LENGTH + 1, START))
    if start.startswith(b"PK"):  # the beginning of a zip archive, whose end is missing
        raise InputError(f"The model file {str(path)!r} is cut short; save or copy it again")
    if start.startswith(COMPACT):
        return "compact"
    if start.startswith(OLD_TORCH):
        return "torch"
    if start[LENGTH:].startswith(b"{"):
        return "safetensors"
    return kind_of_booster(start) or "pickle"


def _load_skops(path: Path, trust: bool) -> Any:
    return read_skops(path, trust)


def _load_torch(path: Path, trust: bool) -> Any:
    from leakscope.models.torch_files import read_torch

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(path, sum(member.file_size for member in archive.infolist()))
    return read_torch(path, trust)


def _load_safetensors(path: Path, trust: bool) -> Any:
    from leakscope.models.torch_files import read_safetensors

    return read_safetensors(path)


def _load_compact(path: Path, trust: bool) -> Any:
    from leakscope.models.torch_files import Weights

    return Weights(path)


def _load_xgboost(path: Path, trust: bool) -> Any:
    return read_booster(path, "xgboost")


def _load_lightgbm(path: Path, trust: bool) -> Any:
    return read_booster(path, "lightgbm")


def _unpickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise UntrustedFileError(
            f"The model file {str(path)!r} is not a skops file, and a pickle or joblib file can "
            "run any code when it is loaded; save the model with skops.io.dump, or pass "
            "--trust-pickle (trust_pickle=True) if you made it yourself"
        )
    import joblib

    return joblib.load(path)


_READERS = {
    "skops": _load_skops,
    "torch": _load_torch,
    "safetensors": _load_safetensors,
    "compact": _load_compact,
    "xgboost": _load_xgboost,
    "lightgbm": _load_lightgbm,
    "pickle": _unpickle,
}
