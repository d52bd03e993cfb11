"""Models from files, safely: a model file is data from a stranger.

A pickle (and joblib's files are pickles) runs whatever code it holds when it is loaded, so it is
refused unless the user says that they trust it. skops files name the types they hold, and load
only when all of them are known.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from leakscope.errors import InputError, UntrustedFileError
from leakscope.models.answers import first_line
from leakscope.records.checks import listed

# A skops file is a zip archive. One that unpacks to more than this, and to a hundred times its own
# size, is made to fill the memory rather than to hold a model.
LARGE = 2**30
SWELLS = 100


# scikit-learn's own classes that skops leaves to its user to trust. They hold arrays and numbers,
# and loading them calls nothing but themselves; without them no tree, no forest and no nearest
# neighbours would load.
HOLD_NUMBERS = frozenset(
    {
        "numpy.dtype",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
    }
)


def load_model(path: str | Path, *, trust_pickle: bool = False) -> Any:
    """The object in a model file: skops always, pickle and joblib only if trusted."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; give the path of a model file")
    if not path.is_file():
        raise InputError(f"There is no model file {str(path)!r}; give the path of one")
    if path.stat().st_size == 0:
        raise InputError(f"The model file {str(path)!r} is empty; save the model again")
    try:
        return _load_skops(path, trust_pickle) if _is_skops(path) else _unpickle(path, trust_pickle)
    except (InputError, UntrustedFileError):
        raise
    except Exception as error:  # whatever a damaged or foreign file makes its reader raise
        raise InputError(
            f"The model file {str(path)!r} could not be read: {first_line(error)}; "
            "save it again with skops.io.dump"
        ) from error


def _is_skops(path: Path) -> bool:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return "schema.json" in archive.namelist()
    with path.open("rb") as file:
        if file.read(2) == b"PK":  # the beginning of a zip archive, whose end is missing
            raise InputError(f"The model file {str(path)!r} is cut short; save or copy it again")
    return False


def _load_skops(path: Path, trust: bool) -> Any:
    from skops.io import get_untrusted_types, load

    _refuse_bomb(path)
    held = get_untrusted_types(file=path)
    unknown = [one for one in held if one not in HOLD_NUMBERS]
    if unknown and not trust:
        raise UntrustedFileError(
            f"The model file {str(path)!r} holds types that are not known to be safe: "
            f"{listed(unknown)}; pass --trust-pickle (trust_pickle=True), which trusts any file, "
            "if you made it yourself"
        )
    return load(path, trusted=held)


def _refuse_bomb(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(LARGE, SWELLS * path.stat().st_size):
        raise UntrustedFileError(
            f"The model file {str(path)!r} would unpack to {unpacked / 2**30:.1f} GiB, more than "
            f"{SWELLS} times its size; save the model again with skops.io.dump"
        )


def _unpickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise UntrustedFileError(
            f"The model file {str(path)!r} is not a skops file, and a pickle or joblib file can "
            "run any code when it is loaded; save the model with skops.io.dump, or pass "
            "--trust-pickle (trust_pickle=True) if you made it yourself"
        )
    import joblib

    return joblib.load(path)
