"""How true an explanation is to its model: infidelity and sensitivity (Yeh et al. 2019).

The figures are those of captum's ``metrics.infidelity`` and ``metrics.sensitivity_max``, worked out
from arrays: a network is asked here for what it says, and any channel for what it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from leakscope.models.attributions import Classes, Output
from leakscope.protocols import Floats

# Explanations (n, d) of records (n, d).
Explain = Callable[[Floats], Floats]


def outputs_of(model: Any, X: Floats, target: Classes, output: Output) -> Floats:
    """The logit or the probability of a class (n,) at each record (n, d), (n,)."""
    logits = model.module(model.tensor(X)).detach().double().numpy()
    told = logits if output == "logit" else softmax(logits, axis=1)
    return np.asarray(told[np.arange(len(X)), target])


def infidelity(
    outputs: Callable[[Floats], Floats], X: Floats, explanations: Floats, noise: Floats
) -> Floats:
    """By how much explanations φ (n, d) miss what changes do, (n,): E[(Iᵀφ − (f(x) − f(x − I)))²].

    Definition 2.1, over changes I: noise (s, n, d). outputs: f, from records (n, d) to (n,).
    """
    at_record = outputs(X)
    errors = [
        np.square((change * explanations).sum(axis=1) - (at_record - outputs(X - change)))
        for change in noise
    ]
    return np.asarray(np.mean(errors, axis=0))


def sensitivity(explain: Explain, X: Floats, explanations: Floats, noise: Floats) -> Floats:
    """The largest relative change of an explanation by a small one of its record, (n,).

    Definition 4.1, ‖φ(x + I) − φ(x)‖₂ / ‖φ(x)‖₂ at its largest over changes I: noise (s, n, d).
    """
    sizes = np.linalg.norm(explanations, axis=1)
    moved = [np.linalg.norm(explain(X + change) - explanations, axis=1) for change in noise]
    # An explanation of 0 has no relative change: as captum has it, the change itself.
    return np.asarray(np.max(moved, axis=0) / np.where(sizes > 0, sizes, 1.0))
