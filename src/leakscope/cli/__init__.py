"""The command ``leakscope``: parse, call, print.

Results go to stdout and everything else to stderr; an error is one sentence and exit code 2.
Nothing here imports numpy, pandas or scikit-learn before a command runs, so that help is quick.
"""

from __future__ import annotations

from leakscope.cli.run import main

__all__ = ["main"]
