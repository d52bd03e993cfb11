"""Runs one piece of user code and keeps what it found; part of benchmarks/peers.py.

usage: python _run.py CODE FOLDER

Writes FOLDER/found.npz with the arrays that the code leaves behind, and FOLDER/cost.json with
the seconds of its imports and of the rest, and the most megabytes that it had.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

FOUND = ("scores", "membership", "values")


def declare_operators() -> None:
    """Declare the operators without which torchvision is not imported, where they are missing.

    torchvision of the package index is built for CUDA. Beside torch for the CPU its operators do
    not load, and nobody here calls them.
    """
    import torch

    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            inputs = "Tensor dets, Tensor scores, float iou_threshold"
            torch.library.define(f"torchvision::{name}", f"({inputs}) -> Tensor")


def peak_megabytes() -> float:
    """The most resident memory that this process has had.

    Linux counts in the usage of a process what its parent had when it was started; the status of
    the process does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text("utf-8").splitlines()
        return next(int(one.split()[1]) for one in lines if one.startswith("VmHWM")) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(code: Path, folder: Path) -> None:
    """Run the code, its imports first."""
    if find_spec("torchvision") is not None:
        declare_operators()
    tree = ast.parse(code.read_text("utf-8"), str(code))
    imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    rest = [one for one in tree.body if one not in imports]
    names: dict[str, object] = {"__name__": "user_code", "__file__": str(code)}
    seconds = {}
    for what, body in (("imports", imports), ("work", rest)):
        start = time.perf_counter()
        exec(compile(ast.Module(body, []), str(code), "exec"), names)
        seconds[what] = time.perf_counter() - start
    np.savez(folder / "found.npz", **{name: names[name] for name in FOUND if name in names})
    cost = seconds | {"megabytes": peak_megabytes()}
    (folder / "cost.json").write_text(json.dumps(cost), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
