"""What a model, a channel, an attack, a recipe and a defense must offer: the walls of the house.

Shapes: n records, k classes, w the width of a channel, m shadow models, p parameters. Of an oracle:
q queries of d features, k records that explain each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from leakscope.evidence import Evidence
    from leakscope.extractions.disclosure import Disclosure
    from leakscope.records import Records

Task = Literal["classification", "regression"]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
Labels = NDArray[Any]

# What a model can be asked for, and what a channel can need of it.
Ability = Literal[
    "labels", "probabilities", "loss", "queries", "parameters", "gradients", "records"
]

# What an attack knows of who was a member, beyond what it sees through its channel.
Knowledge = Literal[
    "none",
    "average training loss",
    "members of the other half",
    "how it was trained, and records like its members",
]

# Told what is being done, how many steps of it are finished and how many there are.
Progress = Callable[[str, int, int], None]

BOTH: frozenset[Task] = frozenset({"classification", "regression"})
CLASSIFICATION: frozenset[Task] = frozenset({"classification"})
REGRESSION: frozenset[Task] = frozenset({"regression"})


def silent(step: str, done: int, total: int) -> None:
    """The progress of which nobody is told."""


class Stack(Protocol):
    """Numbers of m models about n records, (m, n, w): an array, or files read where they are asked.

    ``stack[:, start:stop]`` is an array in memory: long work goes over the records in parts.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n, w)."""
        ...

    def __getitem__(self, index: Any) -> Any:
        """What numpy would give for slices, numbers, masks or positions of models and records."""
        ...


@runtime_checkable
class Model(Protocol):
    """A trained model.

    ``abilities`` says what can be asked of it: its labels, its probabilities, its loss, whether it
    answers for features it has not been asked about before (``queries``; saved predictions do
    not), its ``parameters``, if it is a ParametricModel, the ``gradients`` of its outputs by the
    features, and the training ``records`` that explain a prediction, if it is an ExplainedModel.
    """

    name: str
    task: Task
    abilities: frozenset[Ability]

    @property
    def classes(self) -> Labels | None:
        """The labels in the order of the columns of ``predict_proba``; None for regression."""
        ...

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,)."""
        ...

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k), rows summing to 1."""
        ...

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,): log-loss for classes, squared error for numbers."""
        ...


@runtime_checkable
class ParametricModel(Model, Protocol):
    """A model that is a vector of numbers, where ``abilities`` has ``parameters``."""

    def parameters(self) -> Floats:
        """The parameter vector, (p,), in an order that is the same for all models of a recipe."""
        ...


@runtime_checkable
class AdjustableModel(ParametricModel, Protocol):
    """A model that can be had with other parameters, such as those that are released."""

    def with_parameters(self, vector: Floats) -> Model:
        """The same model with these parameters (p,), and no more of its training than it needs."""
        ...


@runtime_checkable
class WrappedModel(Model, Protocol):
    """A model around another one, with the same answers for the same classes."""

    @property
    def wrapped(self) -> Model:
        """The one inside."""
        ...


class Explainer(Protocol):
    """Which training records explain a prediction, for those who hold all of them.

    Influence is how much the loss of a prediction rises without the record; d features are those
    the predictor itself works on, after all preparation.
    """

    @property
    def X(self) -> Floats:  # noqa: N802 -- a matrix, as everywhere
        """The features of the training records, (n, d)."""
        ...

    @property
    def y(self) -> Labels:
        """Their labels, (n,)."""
        ...

    def predict(self, X: Floats) -> Floats:
        """The probability of class 1, (q,), or of every class, (q, C); the number predicted."""
        ...

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """The positions of the k records that are shown for each query, and their influence.

        Both (q, k), the most influential first; −1 and 0 where no record is shown.
        """
        ...

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The influence of every record, in parts: which queries, and their influences (r, n)."""
        ...


@runtime_checkable
class ExplainedModel(Model, Protocol):
    """A model that comes with the records that explain it, where ``abilities`` has ``records``."""

    @property
    def explainer(self) -> Explainer:
        """Its training records and their influence."""
        ...

    def prepared(self, X: Any) -> Floats:
        """Records (n, …) as the explainer is asked about them, (n, d)."""
        ...


class Channel(Protocol):
    """What the adversary sees of a model. Options are fields of a frozen dataclass.

    ``scope``: whether it shows something of each record, or one thing of the whole model.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    needs: ClassVar[frozenset[Ability]]
    scope: ClassVar[Literal["record", "model"]] = "record"

    def width(self, model: Model) -> int:
        """How many numbers an observation of one record, or of the model, has."""
        ...

    def observe(self, model: Model, records: Records) -> Floats:
        """What is seen of each record, (n, w); of the model as a whole, (1, w)."""
        ...


class Attack(Protocol):
    """Evidence in, a membership score per record out; higher means member.

    An attack is a pure function of what its channel shows. What it knows of the members of the
    target beyond that is declared in ``knowledge``, and the evidence gives no more. ``shadows`` is
    the least number of shadow models it needs, 0 where it needs none; ``on_request`` keeps it out
    of an audit that does not name it.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    channel: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    knowledge: ClassVar[Knowledge] = "none"
    shadows: ClassVar[int] = 0
    on_request: ClassVar[bool] = False

    def score(self, evidence: Evidence) -> Floats:
        """A score per record, (n,)."""
        ...

    def threshold(self, evidence: Evidence) -> float | None:
        """The score from which this adversary says member; None: chosen on a fifth of records."""
        return None


class Recipe(Protocol):
    """How a model is made from records; a subclass need only say its name and fit.

    ``name`` is what it is called in messages; ``together``: how many models in a row it trains at
    once. It decides where a run is cut into chunks, so that resuming trains the same together.
    """

    name: str
    together: int = 1

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n), trained on the records whose role is 1."""
        ...


class Defense(Protocol):
    """What is done against an adversary: around a recipe, or around a channel.

    One that works in training or on the trained model leaves channels alone, one that works on
    what is shown leaves recipes alone. Two combine by wrapping: what one has wrapped is a recipe
    (a channel) like any other, and keeps what it wraps as its ``recipe`` (``channel``), so that a
    third can see what was done before. ``example``: how it is written in a list of defenses, its
    name and after a colon its first option.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    example: ClassVar[str]

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """A recipe of defended models."""
        return recipe

    def wrap_channel(self, channel: Channel) -> Channel:
        """A channel that shows less."""
        return channel

    def budget(self, recipe: Recipe, n: int) -> tuple[float, float] | None:
        """The (ε, δ) of differential privacy that a model of n records then has; None: no promise.

        recipe: the one that is defended, as it was before.
        """
        return None


# What an oracle tells of the influence of the records it shows: how large and in which direction,
# how large alone, or nothing.
Show = Literal["signed", "absolute", "records"]


@dataclass(frozen=True, eq=False)
class Answers:
    """What an oracle says to q queries: a prediction each, and the k records that explain it.

    ``predictions`` (q,), the probability of class 1, or (q, classes); ``shown`` (q, k), a number by
    which one record is told from another and which means nothing else, the most influential first;
    their ``features`` (q, k, d) and ``labels`` (q, k); ``values`` (q, k), the influence of each, or
    its size, or None. Influence is how much the probability of the predicted class falls without
    the record. Where fewer than k are shown ``shown`` is −1, and what stands in the other arrays
    means nothing.
    """

    predictions: Floats
    shown: NDArray[np.int64]
    features: Floats
    labels: Labels
    values: Floats | None

    def only(self, query: int) -> Answers:
        """The answers to this one query, in the same shapes."""
        one = slice(query, query + 1)
        values = None if self.values is None else self.values[one]
        return Answers(
            self.predictions[one], self.shown[one], self.features[one], self.labels[one], values
        )


@dataclass(frozen=True, eq=False)
class Log:
    """What an oracle has given away: the records shown so far (r,), in order, each once.

    ``first`` (r,) is the query, counted from 1, at which each was shown for the first time.
    """

    queries: int
    shown: NDArray[np.int64]
    first: NDArray[np.int64]


class Oracle(Protocol):
    """One released model behind queries, with a budget and a log; the only door to its records."""

    @property
    def width(self) -> int:
        """How many features a query has, d."""
        ...

    @property
    def k(self) -> int:
        """How many records explain a prediction."""
        ...

    @property
    def show(self) -> Show:
        """What it tells of their influence."""
        ...

    @property
    def remaining(self) -> int | None:
        """How many queries it still answers; None: any number."""
        ...

    @property
    def log(self) -> Log:
        """What it has given away so far, to whomever it was."""
        ...

    def ask(self, X: Floats) -> Answers:
        """The answers to the queries (q, d); an OracleBudgetError where fewer than q remain."""
        ...


class Extraction(Protocol):
    """An attack that chooses its queries and brings back records. Options are its fields.

    ``holds``: whether the adversary has records of its own; they are then its first option, (m, d).
    It stops with what it has when the budget is spent, and claims only what the oracle showed.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    holds: ClassVar[bool] = False

    def run(self, oracle: Oracle) -> Disclosure:
        """What was brought back."""
        ...
