"""One run of trials, as a command to be killed: python runs.py STORE [NAME=VALUE ...]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from toys import Toy, draw_records

from leakscope.channels.outputs import Loss, Margin
from leakscope.errors import LeakscopeError
from leakscope.trials import random_halves, run_trials


def main(store: str, *words: str) -> int:
    """Run it; 2 with a sentence where Leakscope refuses, 130 where it was interrupted."""
    options: dict[str, Any] = dict(word.split("=", 1) for word in words)
    models = int(options.pop("models", 64))
    recipe = Toy(
        seconds=float(options.pop("seconds", 0.0)),
        journal=Path(options.pop("journal")) if "journal" in options else None,
        forbidden=Path(options.pop("forbidden")) if "forbidden" in options else None,
    )
    if "workers" in options:
        options["workers"] = int(options["workers"])
    roles = random_halves(300, models, 0)
    try:
        run_trials(recipe, draw_records(), roles, [Margin(), Loss()], store=store, **options)
    except LeakscopeError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 2
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"{interrupt}\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
