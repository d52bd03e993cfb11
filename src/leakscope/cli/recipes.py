"""The recipe that --recipe names."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

from leakscope.errors import InputError
from leakscope.models.answers import first_line
from leakscope.protocols import Recipe
from leakscope.recipes import as_recipe, named_recipe


def find_recipe(text: str) -> Recipe:
    """A registered recipe, or that of ``module:attribute``: an estimator, or what makes one."""
    if ":" not in text:
        return named_recipe(text)
    return as_recipe(_imported(text), text)


def _imported(text: str) -> Any:
    module, _, attribute = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        # The folder one stands in, as for python -m: that is where one's own module is.
        sys.path.insert(0, here)
    try:
        thing = attrgetter(attribute)(importlib.import_module(module))
        return thing() if callable(thing) else thing
    except (Exception, SystemExit) as error:
        raise InputError(
            f"The recipe {text!r} could not be made ({type(error).__name__}: {first_line(error)}); "
            "name a module that can be imported from here and an attribute of it"
        ) from error
