"""``python -m leakscope`` is the command ``leakscope``."""

from __future__ import annotations

import sys

from leakscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
