"""Whether arrays make up a tree, and ask about columns that there are.

Compiled code that answers with a tree follows the places that its arrays name, wherever they lead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Unsound(Exception):  # noqa: N818 - no error of a user's: soundness.py makes it one
    """What is wrong with a part of a model, in words that follow its name and "that"."""


def refuse_no_tree(left: NDArray[Any], right: NDArray[Any]) -> None:
    """Refuse nodes that do not lead from the first of them to a leaf.

    left, right: the children of every node, (nodes,), left negative where it is a leaf. Who starts
    at a node that is no child, and comes to each child in one way only, never comes in a circle.
    """
    if len(left) == 0 or left.shape != right.shape:
        raise Unsound("has no nodes, or children on one side only")
    inner = left >= 0
    children = np.concatenate([left[inner], right[inner]])
    if children.size and (children.min() < 1 or children.max() >= len(left)):
        raise Unsound("leads to nodes that it has not")
    if np.unique(children).size != children.size:
        raise Unsound("leads to one node in two ways")


def refuse_other_columns(columns: NDArray[Any], features: int) -> None:
    """Refuse columns that records of so many features have not."""
    if columns.size and (columns.min() < 0 or columns.max() >= features):
        raise Unsound(f"asks about columns that records of {features} features have not")
