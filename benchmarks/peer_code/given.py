"""What every tool is given, by name: ``from given import X_in, y_in``; part of benchmarks/peers.py.

Arrays, numbers and fitted models are read from the folder that PEERS_GIVEN names, each when it is
asked for: a tool without torch is not made to import it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(os.environ.get("PEERS_GIVEN", "."))


def __getattr__(name: str) -> Any:
    array, model = FOLDER / f"{name}.npy", FOLDER / f"{name}.joblib"
    if array.exists():
        found = np.load(array)
        return found if found.ndim else found.item()
    if model.exists():
        import joblib

        return joblib.load(model)
    if name in ("Network", "network"):
        import torch
        from architecture import Network

        if name == "Network":  # to make fresh ones
            return Network
        found = Network()
        found.load_state_dict(torch.load(FOLDER / "network.pt", weights_only=True))
        return found.eval()
    raise AttributeError(name)
