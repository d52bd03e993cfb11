"""What follows from a vector of class probabilities: loss, margin, entropy; plain arrays.

Shapes: probabilities (n, k), truth (n,) the column of each record's true class. Logarithms are of
probabilities clipped at 1e-7, so that 0 and 1 are safe.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logit

from leakscope.protocols import Floats

Numbers = NDArray[np.int64]

# The report says for how many records this changed anything.
CLIP = 1e-7


def split_by_truth(probabilities: Floats, truth: Numbers) -> tuple[Floats, Floats]:
    """The probability of the true class (n,), and those of the others (n, k−1)."""
    n, k = probabilities.shape
    is_truth = np.zeros((n, k), dtype=bool)
    is_truth[np.arange(n), truth] = True
    return probabilities[is_truth], probabilities[~is_truth].reshape(n, k - 1)


def clipped_log(values: Floats) -> Floats:
    """The logarithm of values clipped to [1e-7, 1]."""
    return np.asarray(np.log(np.clip(values, CLIP, 1.0)))


def log_odds(values: Floats) -> Floats:
    """log p − log(1 − p) of probabilities clipped to [1e-7, 1 − 1e-7]."""
    return np.asarray(logit(np.clip(values, CLIP, 1 - CLIP)))


def log_loss(probabilities: Floats, truth: Numbers) -> Floats:
    """−log of the probability of the true class, (n,)."""
    return -clipped_log(probabilities[np.arange(len(truth)), truth])


def logit_margin(probabilities: Floats, truth: Numbers) -> Floats:
    """log p − log(1 − p) of the true class, (n,)."""
    true_class, others = split_by_truth(probabilities, truth)
    # Summing the other classes keeps what 1 − p loses to rounding where p is near 1.
    return clipped_log(true_class) - clipped_log(others.sum(axis=1))


def entropy(probabilities: Floats) -> Floats:
    """The entropy of each prediction in nats, (n,)."""
    return np.asarray(entr(probabilities).sum(axis=1))


def modified_entropy(probabilities: Floats, truth: Numbers) -> Floats:
    """−(1 − p_y) log p_y − Σ_{i≠y} p_i log(1 − p_i), (n,) (Song & Mittal 2021, section 3.2)."""
    true_class, others = split_by_truth(probabilities, truth)
    own = (1 - true_class) * clipped_log(true_class)
    rest = (others * clipped_log(1 - others)).sum(axis=1)
    return np.asarray(-(own + rest))


def count_clipped(probabilities: Floats, truth: Numbers) -> int:
    """How many records have a true class whose log-odds clipping changes."""
    true_class, others = split_by_truth(probabilities, truth)
    return int(((true_class < CLIP) | (others.sum(axis=1) < CLIP)).sum())
