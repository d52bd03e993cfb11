"""Fingerprints: whether a recipe, or anything with settings, is still what it was.

A stored model is used again only if its recipe has the same fingerprint, so it covers the settings,
the code of the user's own modules, and the versions of the libraries. Where it cannot tell, it is
never the same again: training once too often is a cost, and an old model under a new recipe a lie.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import inspect
import pickle
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from io import BytesIO
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import joblib
import numpy as np
from joblib.externals.loky.backend.reduction import get_loky_pickler

from leakscope import __version__
from leakscope.errors import InputError

# Every recipe rests on these packages, of these distributions, whether or not it names them.
NUMERICAL = {
    "numpy": "numpy",
    "pandas": "pandas",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
}
# The folders in which installed packages lie: their versions tell what is in them.
INSTALLED = {"site-packages", "dist-packages"}


def fingerprint(thing: Any) -> str:
    """64 hexadecimal digits that change with any setting, own code or library version.

    They are the same in every process. Functions and classes typed into a notebook or defined
    inside a function may have others in each. Of one's own modules the plain globals count that
    their functions read.
    """
    settings, modules = _written(thing)
    versions = {f"{name} {importlib.metadata.version(name)}" for name in NUMERICAL.values()}
    facts = [settings, *sorted(versions | set(_code_of(modules)))]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _written(thing: Any) -> tuple[str, set[str]]:
    """A hash of what it holds, and the names of the modules its parts come from."""
    try:
        _, modules = _pickled(thing, pickle.Pickler)
        if "__main__" not in modules or _file_of("__main__") is not None:
            return str(joblib.hash(thing)), modules  # unlike a pickle, in one order in any process
    except Exception:
        pass  # plain pickle refuses lambdas and local classes; workers are sent them as follows
    try:
        data, modules = _pickled(thing, get_loky_pickler())
    except Exception as error:
        raise InputError(
            f"This {type(thing).__name__} cannot be sent to a worker or compared with a stored one "
            f"({type(error).__name__}: {error}); keep open files, locks and connections out of it"
        ) from error
    return hashlib.sha256(data).hexdigest(), modules


def _pickled(thing: Any, pickler: Any) -> tuple[bytes, set[str]]:
    modules: set[str] = set()

    class Noting(pickler):  # type: ignore[misc]
        """A pickler that notes where everything it meets was defined."""

        def reducer_override(self, part: Any) -> Any:
            own = part.__name__ if isinstance(part, ModuleType) else _home(part)
            modules.add(own)
            above = getattr(super(), "reducer_override", None)
            return NotImplemented if above is None else above(part)

    file = BytesIO()
    Noting(file).dump(thing)
    return file.getvalue(), modules


def _home(part: Any) -> str:
    """The module of a class or a function, or of the class of anything else."""
    return str(getattr(part, "__module__", None) or type(part).__module__)


def _code_of(modules: set[str]) -> Iterator[str]:
    """The version of each library, and a hash of each file of one's own, that these lead to.

    The user's own modules are followed through their imports: a recipe whose helper in another file
    was changed is another recipe.
    """
    found: set[str] = set()
    open_ends = set(modules)
    while open_ends:
        name = open_ends.pop()
        found.add(name)
        package, _, _ = name.partition(".")
        if package == "leakscope":
            yield f"leakscope {__version__}"  # it prepares tables and seeds the estimators
            continue
        file = None if package in NUMERICAL else _file_of(name)
        if file is None or _of_python(file):
            continue
        if INSTALLED & set(file.parts) and package in _distributions():
            yield from _versions(package)
        else:
            source = file.read_bytes()
            yield f"{name} {hashlib.sha256(source).hexdigest()}"
            if name in sys.modules:
                yield f"{name} {_as_loaded(sys.modules[name])}"
            open_ends |= {*_imports(source, name, file), *_parents(name)} - found


def _as_loaded(module: ModuleType) -> str:
    """A hash of a module's functions as they are in memory, and of the plain globals they read.

    A file may have been edited since it was imported, and a global set to another value: neither
    shows in the file.
    """
    found = _functions(vars(module), module.__name__)
    functions = sorted(found, key=lambda one: one.__qualname__)
    codes = [code for function in functions for code in _nested(function.__code__)]
    read = {name for code in codes for name in code.co_names}
    known = {name: vars(module)[name] for name in sorted(read & vars(module).keys())}
    plain = {name: value for name, value in known.items() if _is_plain(value)}
    told = [(code.co_qualname, code.co_code, code.co_names, _constants(code)) for code in codes]
    return str(joblib.hash([told, plain]))


def _functions(names: Mapping[str, Any], module: str) -> Iterator[FunctionType]:
    """The functions that a module defines, also those of its classes."""
    for value in names.values():
        inner = inspect.unwrap(value) if callable(value) else value
        inner = getattr(inner, "__func__", getattr(inner, "fget", inner))
        if getattr(inner, "__module__", None) != module:
            continue
        if isinstance(inner, FunctionType):
            yield inner
        elif isinstance(inner, type):
            yield from _functions(vars(inner), module)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _constants(code: CodeType) -> list[str]:
    """What is written in the code: numbers, texts and the like; the order of a set is its own."""
    plain = (one for one in code.co_consts if not isinstance(one, CodeType))
    return [str(sorted(map(repr, one)) if isinstance(one, frozenset) else one) for one in plain]


def _is_plain(value: Any) -> bool:
    """Whether it is a setting: a number, a text, or a collection of such."""
    if isinstance(value, dict):
        return all(_is_plain(one) for pair in value.items() for one in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return all(_is_plain(one) for one in value)
    return value is None or isinstance(value, str | bytes | int | float | complex | np.ndarray)


def _file_of(name: str) -> Path | None:
    """Where a module's code is, found without running it; None for what has no file."""
    if name in sys.modules:
        origin = getattr(sys.modules[name], "__file__", None)
    else:
        spec = _found(name)
        origin = None if spec is None else spec.origin
    file = None if origin is None else Path(origin)
    return file if file is not None and file.is_file() else None


def _found(name: str) -> ModuleSpec | None:
    parent, _, _ = name.rpartition(".")
    if not parent:
        try:
            return importlib.util.find_spec(name)
        except ValueError:  # one that was made, not imported
            return None
    above = _found(parent)
    folders = None if above is None else above.submodule_search_locations
    return None if folders is None else PathFinder.find_spec(name, folders)


def _of_python(file: Path) -> bool:
    """Whether it belongs to Python itself, whose version changes no model on purpose."""
    if INSTALLED & set(file.parts):
        return False
    homes = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return any(file.is_relative_to(home) for home in homes)


@cache
def _distributions() -> dict[str, list[str]]:
    """Which installed distributions each top-level module comes from."""
    return {
        name: sorted(set(of)) for name, of in importlib.metadata.packages_distributions().items()
    }


def _versions(package: str) -> Iterator[str]:
    for name in _distributions()[package]:
        yield f"{name} {importlib.metadata.version(name)}"


def _parents(name: str) -> Iterator[str]:
    """The packages around a module: their __init__ runs before it does."""
    while name := name.rpartition(".")[0]:
        yield name


def _imports(source: bytes, name: str, file: Path) -> Iterator[str]:
    """What a module's code imports, at its top or inside functions; some are no modules."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a compiled module
        return
    around = name if file.name == "__init__.py" else name.rpartition(".")[0]
    if name == "__main__":
        around = sys.modules[name].__package__ or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            written = "." * node.level + (node.module or "")
            try:
                base = importlib.util.resolve_name(written, around)
            except ImportError:  # a relative import that would fail too
                continue
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
