"""Who explains whom: the influence graph, which tells how much a walk along it can read.

Shokri, Strobel & Zick 2021, sections 5.2.1 and 5.3.3, Table 4 and Figure 10: every training record
is a node with k edges, to the records that explain it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from leakscope.errors import InputError
from leakscope.options import whole_number


@dataclass(frozen=True, eq=False)
class InfluenceGraph:
    """The graph in which each of n records points to the k records that explain it, (n, k).

    A record that explains itself points to itself; −1 points nowhere. It takes somebody who has the
    training set to know the whole of it.
    """

    neighbours: NDArray[np.intp]

    @classmethod
    def of(cls, neighbours: ArrayLike) -> InfluenceGraph:
        """The graph of these out-neighbours (n, k), positions from 0 to n − 1, or −1 for none."""
        array = np.asarray(neighbours)
        if array.ndim != 2 or array.dtype.kind not in "iu":
            raise InputError(
                f"Neighbours must be whole numbers of shape (n, k), got {array.dtype} {array.shape}"
            )
        if array.size and not (array.min() >= -1 and array.max() < len(array)):
            raise InputError(f"A neighbour is not one of the {len(array)} records, from 0 on")
        return cls(array.astype(np.intp))

    @property
    def component_sizes(self) -> NDArray[np.intp]:
        """How many records each strongly connected component has, largest first."""
        return np.sort(np.bincount(self._components))[::-1]

    @property
    def in_degrees(self) -> NDArray[np.intp]:
        """How many records each record explains, (n,), itself among them if it does."""
        return np.bincount(self._edges[1], minlength=len(self.neighbours))

    @cached_property
    def reach(self) -> NDArray[np.intp]:
        """How many records can be seen by walking from each record, (n,), itself counted."""
        labels = self._components
        _, heads = np.unique(labels, return_index=True)
        # Records of one component see the same ones.
        seen = [len(breadth_first_order(self._matrix, h, return_predecessors=False)) for h in heads]
        reach: NDArray[np.intp] = np.asarray(seen, dtype=np.intp)[labels]
        return reach

    @property
    def shown(self) -> NDArray[np.intp]:
        """How many records a walk from each record is shown, (n,).

        As many as it reaches, without the start where no record on the way shows that.
        """
        sources, targets = self._edges
        shown_again = np.bincount(self._components)[self._components] > 1
        shown_again[sources[sources == targets]] = True
        return self.reach - ~shown_again

    def table(self) -> dict[str, int]:
        """The figures of Table 4."""
        sizes, degrees = self.component_sizes, self.in_degrees
        return {
            "scc": len(sizes),
            "scc_size_1": int((sizes == 1).sum()),
            "largest_scc": int(sizes[0]),
            "max_in_degree": int(degrees.max()),
            "in_degree_0": int((degrees == 0).sum()),
        }

    def omniscient_queries(self, start: int) -> int:
        """How many queries show all that can be seen from a record to one who knows the graph.

        A greedy adversary, as in section 5.2.1: among the records it has, it asks about the one
        that points to the most it has not. (The fewest queries there are is NP-hard to find.)
        """
        n = len(self.neighbours)
        whole_number("start", start, 0, n - 1)
        matrix = self._matrix
        known = np.zeros(n, dtype=bool)
        unknown_beyond = np.diff(matrix.indptr).astype(np.intp)
        pointing = matrix.T.tocsr()

        def learn(record: int) -> None:
            known[record] = True
            sources = pointing.indices[pointing.indptr[record] : pointing.indptr[record + 1]]
            unknown_beyond[sources] -= 1

        learn(start)
        queries = 0
        while True:
            best = int(np.argmax(np.where(known, unknown_beyond, 0)))
            if not known[best] or unknown_beyond[best] == 0:
                return queries
            queries += 1
            for record in np.unique(self.neighbours[best]).tolist():
                if record >= 0 and not known[record]:
                    learn(record)

    @cached_property
    def _edges(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """From where and to where each edge goes, (e,)."""
        sources, places = np.nonzero(self.neighbours >= 0)
        return sources, self.neighbours[sources, places]

    @cached_property
    def _matrix(self) -> csr_array:
        n = len(self.neighbours)
        edges = csr_array((np.ones(len(self._edges[0])), self._edges), shape=(n, n))
        edges.sum_duplicates()
        return edges

    @cached_property
    def _components(self) -> NDArray[np.intp]:
        _, labels = connected_components(self._matrix, directed=True, connection="strong")
        return np.asarray(labels, dtype=np.intp)
