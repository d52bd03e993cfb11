"""Explanations by records that are drawn at random, influential ones more often.

The k records are drawn without replacement by the exponential mechanism (McSherry & Talwar 2007):
each draw takes record j of those left with a probability proportional to exp(ε/k · s_j / 2c), where
the score s_j is |influence|, at most c. All k draws at once are the k largest of the exponents with
Gumbel noise added (Durfee & Rogers 2019, section 4).

What that promises. Add one record i to a training set; n counts it. The scores of the others change
by at most c, as they lie between 0 and c. So for any set T of answers in which i is not shown,
P(T with i) ≤ e^ε P(T without i): each draw's weight and the sum of the weights change by a factor
of at most e^(ε/2k), and i itself only adds to the sum. The other way, i adds at most e^(ε/2k) to
the sum of the l-th draw, in which n − l others take part, so that P(T without i) ≤ e^ε n/(n − k)
P(T with i). What is shown is real, so an answer in which i is shown cannot come about without i:
its chance is what δ is. A record of score c among others of score 0 is shown most often, so

    δ = 1 − ∏ (n − l) / (e^(ε/2k) + n − l),  l = 1 … k,

which is about k e^(ε/2k) / n, and at least k/n, which covers the factor n/(n − k) as well. No
choice of ε makes it smaller: this is no promise of the kind one makes with a δ far below 1/n, and
**each answer publishes k members**. What is private is why a record is shown, not that it is one.

The promise is for one query and its explanation; the prediction beside it is not covered. q queries
cost q·ε and q·δ. The same query has the same answer, drawn with a key and the query's own content:
otherwise asking again and again would average the noise away. A query that differs in the last
digit, or asks for another k, is another query, is drawn anew, and is paid for. Whoever knows the
key can take the draw apart. By default it is a new secret for each object, so that the same query
to the same model in another process has another answer, and is paid for again; to keep the answers,
keep the key, as secret as the records, and take a new one for every model. Influences are told as
0: their values would say more than was paid for. Floating-point noise is not exactly what the proof
is about.

Where records are hidden before the draw, n counts those that are left, and there is no promise if
who is hidden depends on the other records: on company, or on a tolerance, which is in spreads.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar

import numpy as np

from leakscope.defenses.explanations import ExplanationDefense, Guard
from leakscope.errors import InputError
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Explainer, Floats, Indices
from leakscope.registry import register

LONGEST_KEY = 64  # bytes that BLAKE2b takes


@register("defense")
@dataclass(frozen=True)
class ExponentialExplanations(ExplanationDefense):
    """Explanations by records drawn at random, influential ones more often, without values.

    epsilon: for all k records of one answer. clip: influence above it counts as this much; with
    influence on probabilities, 0.01 is one point of a percentage. It must not be chosen by looking
    at the records. key: what the draws depend on, a secret; by default a new one for each object,
    so that another process answers the same query differently.
    """

    name: ClassVar[str] = "explain-exponential"
    paper: ClassVar[str] = "McSherry & Talwar 2007; Durfee & Rogers 2019, section 4"
    example: ClassVar[str] = "explain-exponential:50"

    epsilon: float
    clip: float = 0.01
    key: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    def __post_init__(self) -> None:
        magnitude("epsilon", self.epsilon, above=0)
        magnitude("clip", self.clip, above=0)
        if not 0 < len(self.key.encode()) <= LONGEST_KEY:
            raise InputError(
                f"The option key must have from 1 to {LONGEST_KEY} bytes, got "
                f"{len(self.key.encode())}; leave it out for a new secret, or use "
                "secrets.token_hex(32)"
            )

    def __str__(self) -> str:
        return f"{self.name}:{self.epsilon:g}"

    def promise(self, n: int, k: int, queries: int = 1) -> tuple[float, float]:
        """The (ε, δ) that the explanations of so many queries have, for one record more or less.

        n: how many records may be shown to a query, with that one; k: how many are. It is the sum
        over queries.
        """
        whole_number("n", n, 1)
        whole_number("k", k, 1, n)
        whole_number("queries", queries, 1)
        delta = most_often_shown(n, k, self.epsilon)
        return queries * self.epsilon, min(queries * delta, 1.0)

    def _guard(self, explainer: Explainer) -> Guard:
        if _is_drawn(explainer):
            raise InputError(
                f"{self} is around an explainer that draws its records already and tells no "
                "influence to draw by; draw once, with the epsilon that you want"
            )
        return Drawn(explainer, self)


@dataclass(frozen=True, eq=False)
class Drawn(Guard):
    """An explainer that draws the records it shows."""

    layer: ClassVar[int] = 1

    defense: ExponentialExplanations

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """Records drawn for each query in the order in which they were drawn; no influences."""
        k = whole_number("k", k, 1, len(self.X))
        shown = np.full((len(X), k), -1, dtype=np.intp)
        factor = self.defense.epsilon / (2 * k * self.defense.clip)
        for rows, influence in self.explainer.influence_chunks(X):
            exponents = factor * np.minimum(np.abs(influence), self.defense.clip)
            exponents += np.stack([self._noise(query, k) for query in X[rows]])
            exponents[np.isnan(exponents)] = -np.inf
            first = np.argsort(-exponents, axis=1)[:, :k]
            there = np.take_along_axis(exponents, first, axis=1) > -np.inf
            shown[rows] = np.where(there, first, -1)
        return shown, np.zeros((len(X), k))

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """Zeros: influences are not told."""
        for rows, influence in self.explainer.influence_chunks(X):
            yield rows, 0.0 * influence

    def _noise(self, query: Floats, k: int) -> Floats:
        """The Gumbel noise of each record, (n,), the same whenever this query (d,) is asked."""
        # The same numbers are the same query in any type, and the two zeros are one number.
        content = (query.astype(np.float64) + 0.0).tobytes()
        # The promises of two draws add up only if their noise is not the same.
        content += struct.pack("<Qdd", k, self.defense.epsilon, self.defense.clip)
        digest = blake2b(content, digest_size=16, key=self.defense.key.encode()).digest()
        source = np.random.Philox(key=int.from_bytes(digest, "little"))
        return np.random.Generator(source).gumbel(size=len(self.X))


def _is_drawn(explainer: Explainer | None) -> bool:
    """Whether there is a draw in an explainer already, whatever else is wrapped around it."""
    if explainer is None:
        return False
    return isinstance(explainer, Drawn) or _is_drawn(getattr(explainer, "explainer", None))


def most_often_shown(n: int, k: int, epsilon: float) -> float:
    """The largest chance with which one of n records is among the k drawn, whatever the scores."""
    others = n - np.arange(1, k + 1)
    with np.errstate(divide="ignore"):  # the last record that is left is drawn surely
        logs = np.log(others)
    return float(-np.expm1((logs - np.logaddexp(epsilon / (2 * k), logs)).sum()))
