"""What the outputs of a module are, told from the last operation it does: logits or probabilities.

Whether the softmax is a layer, a function or not there at all, torch notes it with the answer for
the sake of the gradient; so no probabilities are taken for logits, which would flatten them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.special import expit, softmax
from torch import Tensor

from leakscope.protocols import Floats

Kind = Literal["logits", "probabilities", "log-probabilities"]

# By the name that torch gives the gradient of an operation.
ENDINGS: dict[str, Kind] = {
    "SoftmaxBackward": "probabilities",
    "SigmoidBackward": "probabilities",
    "LogSoftmaxBackward": "log-probabilities",
    "LogSigmoidBackward": "log-probabilities",
}
# These move numbers, or keep them in bounds: what came before tells what the numbers are.
MOVES = frozenset(
    f"{name}Backward"
    for name in (
        "Alias", "Clamp", "ClampMax", "ClampMin", "Clone", "Permute", "ReshapeAlias", "Select",
        "Slice", "Squeeze", "T", "ToCopy", "Transpose", "UnsafeView", "Unsqueeze", "View",
    )
)  # fmt: skip
# How far from 1 probabilities of single precision sum.
SUM_TOLERANCE = 1e-4


def kind_of_outputs(answer: Tensor) -> Kind | None:
    """What an answer (n,) or (n, k), computed with gradients, is; None where nothing tells."""
    last = answer.grad_fn
    while last is not None and _operation(last.name()) in MOVES:
        last = last.next_functions[0][0]
    if last is not None and _operation(last.name()) in ENDINGS:
        return ENDINGS[_operation(last.name())]
    if answer.ndim == 2 and answer.shape[1] > 1:
        return "probabilities" if _sum_to_one(answer.detach()) else "logits"
    return None if last is None else "logits"


def as_probabilities(answers: Floats, kind: Kind | None) -> Floats:
    """Answers (n,) or (n, k) as probabilities; −inf, a class that is ruled out, is 0."""
    if kind == "probabilities":
        return answers
    with np.errstate(invalid="ignore"):
        if kind == "log-probabilities":
            return np.asarray(np.exp(answers))
        if answers.ndim == 1 or answers.shape[1] == 1:
            return np.asarray(expit(answers))
        return np.asarray(softmax(answers, axis=1))


def _operation(name: str) -> str:
    """The name of an operation without the number of its variant."""
    return name.rstrip("0123456789")


def _sum_to_one(rows: Tensor) -> bool:
    """Whether all rows (n, k) are probabilities: of logits, no two records are by chance."""
    off = (rows.double().sum(dim=1) - 1).abs()
    return bool((rows >= 0).all() and (off < SUM_TOLERANCE).all()) and len(rows) > 0


def with_gradients(inputs: Tensor) -> Tensor:
    """The same inputs, from which a graph is kept also where all of a module's weights are frozen.

    A copy, since what a gradient is asked for cannot be worked on in place.
    """
    with torch.enable_grad():
        return inputs.requires_grad_().clone()
