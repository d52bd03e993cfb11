"""The model behind HTTP that ``--model-url`` names, with what ``--url-options`` say."""

from __future__ import annotations

from dataclasses import fields

from leakscope.cli.texts import values_in
from leakscope.errors import UnknownNameError
from leakscope.models import HttpModel

# Neither an address, which has its own option, nor what a command line has no words for.
NOT_TYPED = {"url", "headers", "clock"}


def model_at(url: str, options: str | None) -> HttpModel:
    """The model at this address; options such as ``budget=1000,token_env=SERVICE_TOKEN``."""
    known = {one.name for one in fields(HttpModel) if one.init} - NOT_TYPED
    given = values_in("url_options", options, see="`leakscope audit --help`")
    for name in given:
        if name not in known:
            raise UnknownNameError("option of --url-options", name, known)
    return HttpModel(url, **given)
