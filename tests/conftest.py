from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, and no test that fails because the machine was busy.
settings.register_profile("leakscope", deadline=None, derandomize=True)
settings.load_profile("leakscope")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of data files that are not part of the package; without it the test is skipped."""
    folder = Path(os.environ.get("LEAKSCOPE_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder}; LEAKSCOPE_DATA can name one")
    return folder
