"""Explanations that only ask: LIME, KernelSHAP and occlusion, for any model that answers queries.

Each takes the same perturbations of every record, so that the least squares of LIME and KernelSHAP
are one product with a matrix that is made once, and the model is asked in large parts. They are
pure functions of ``ask(X, rows)``: the output (q,) for queries X (q, d) that are copies of the
records ``rows`` (q,), whose predicted class it is about. Shapes: n records of d features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh

from leakscope.channels.featured import array_of, reference
from leakscope.errors import InputError
from leakscope.models.answers import class_numbers
from leakscope.models.attributions import Output, number_of_features
from leakscope.options import magnitude, one_of, whole_number
from leakscope.probabilities import logit_margin
from leakscope.protocols import BOTH, Ability, Bools, Channel, Floats, Indices, Model, Task
from leakscope.records import Records
from leakscope.registry import register

Ask = Callable[[Floats, Indices], Floats]

_NUMBERS = 2**22  # of features in one question, 32 MB
_LEAST_COALITIONS = 128


def occlude(ask: Ask, X: Floats, start: Floats, block: int = 1) -> Floats:
    """How much the output falls if a feature, or a block of them, has the value of start (1, d).

    Shared out evenly over a block. Asks n · (1 + ⌈d / block⌉) queries.
    """
    d = X.shape[1]
    covered = np.arange(d) // block == np.arange(-(-d // block))[:, None]
    masks = np.vstack([np.zeros((1, d), dtype=bool), covered])
    answers = _answers(ask, X, len(masks), lambda x: np.where(masks, start, x[:, None]))
    falls = answers[:, :1] - answers[:, 1:]
    return np.asarray(falls @ (covered / covered.sum(axis=1, keepdims=True)))


def local_slopes(ask: Ask, X: Floats, noise: Floats, weights: Floats, ridge: float) -> Floats:
    """LIME: the slopes of the weighted ridge regression of the outputs on the noise, (n, d).

    noise (samples, d) is added to every record, weights (samples,); the record itself takes part
    with weight 1, and the intercept is not penalized. Asks n · (1 + samples) queries.
    """
    steps = np.vstack([np.zeros((1, X.shape[1])), noise])
    shares = np.append(1.0, weights)
    answers = _answers(ask, X, len(steps), lambda x: x[:, None] + steps)
    centred = steps - np.average(steps, axis=0, weights=shares)
    weighted = centred * shares[:, None]
    gram = weighted.T @ centred + ridge * np.eye(X.shape[1])
    return np.asarray(answers @ np.linalg.lstsq(gram, weighted.T, rcond=None)[0].T)


def shapley_values(
    ask: Ask, X: Floats, background: Floats, coalitions: Bools, weights: Floats
) -> Floats:
    """KernelSHAP: the values of least weighted squares over coalitions of features, (n, d).

    A coalition (c, d) has the features of the record, and the others from background (b, d) in
    turn, over which the output is averaged; weights (c,). The values of a record add up to its
    output less the average of the background's. With every coalition, and the weights of
    ``all_coalitions``, they are Shapley values. Asks n · (1 + (c + 1) · b) queries at the most.
    """
    n, d = X.shape
    nobody = np.zeros((1, d), dtype=bool)
    masks = np.vstack([nobody, coalitions])
    rows = np.arange(n)

    def mixed(x: Floats) -> Floats:
        return np.where(masks[:, None], x[:, None, None], background).reshape(len(x), -1, d)

    answers = _answers(ask, X, len(masks) * len(background), mixed)
    worth = answers.reshape(n, len(masks), len(background)).mean(axis=2)
    whole = ask(X, rows) - worth[:, 0]
    players = coalitions.astype(np.float64)
    weighted = players * weights[:, None]
    inverse = pinvh(weighted.T @ players)
    free = (worth[:, 1:] - worth[:, :1]) @ weighted @ inverse
    # The values that add up to the whole: the others move along the inverse's row sums.
    sums = inverse.sum(axis=0)
    return np.asarray(free + (whole - free.sum(axis=1))[:, None] * sums / sums.sum())


def all_coalitions(d: int) -> tuple[Bools, Floats]:
    """Every set of features but none and all, (2^d − 2, d), and its weight in KernelSHAP.

    Lundberg & Lee (2017, theorem 2): (d − 1) / (C(d, s) · s · (d − s)) for a set of s features.
    """
    sets = [chosen for s in range(1, d) for chosen in combinations(range(d), s)]
    masks = np.zeros((len(sets), d), dtype=bool)
    for row, chosen in enumerate(sets):
        masks[row, list(chosen)] = True
    sizes = [len(chosen) for chosen in sets]
    return masks, np.array([(d - 1) / (comb(d, s) * s * (d - s)) for s in sizes])


def drawn_coalitions(d: int, samples: int, seed: int) -> tuple[Bools, Floats]:
    """Sets drawn with the probability of their weight, each with its complement, (samples, d)."""
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, d)
    chances = 1.0 / (sizes * (d - sizes))
    drawn = rng.choice(sizes, size=-(-samples // 2), p=chances / chances.sum())
    places = rng.permuted(np.tile(np.arange(d), (len(drawn), 1)), axis=1)
    masks = places < drawn[:, None]
    return np.vstack([masks, ~masks]), np.ones(2 * len(masks))


@dataclass(frozen=True)
class Surrogate(Channel):
    """What the explanations by questions share.

    output: the "probability" of the predicted class, or its "logit", log p − log(1 − p).
    """

    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset({"labels", "queries"})
    scope: ClassVar[Literal["record", "model"]] = "record"

    output: Output = "probability"

    def width(self, model: Model) -> int:
        """The number of features."""
        return number_of_features(model)

    def asked(self, model: Model, records: Records) -> tuple[Ask, Floats]:
        """The output of each record's predicted class, and the records' features (n, d)."""
        one_of("output", self.output, ("logit", "probability"))
        X = array_of(records)
        shape, regression = X.shape[1:], model.task == "regression"
        chosen = None if regression else class_numbers(model, model.predict(X))

        def ask(queries: Floats, rows: Indices) -> Floats:
            shaped = queries.reshape(-1, *shape)
            if chosen is None:
                return np.asarray(model.predict(shaped), dtype=np.float64)
            shares, classes = model.predict_proba(shaped), chosen[rows]
            if self.output == "logit":
                return logit_margin(shares, classes)
            return shares[np.arange(len(classes)), classes]

        return ask, X.reshape(len(X), -1)


@register("channel")
@dataclass(frozen=True)
class Occlusion(Surrogate):
    """How much the predicted class loses if a feature is replaced by a baseline.

    baseline: "mean" of the records that are shown, or "zero". block: how many features, one after
    another, are replaced together. Costs 2 + d / block queries per record.
    """

    name: ClassVar[str] = "occlusion"
    paper: ClassVar[str] = "Zeiler & Fergus 2014, section 4.2"

    baseline: Literal["zero", "mean"] = "mean"
    block: int = 1

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, d)."""
        whole_number("block", self.block, 1)
        one_of("baseline", self.baseline, ("zero", "mean"))
        ask, X = self.asked(model, records)
        return occlude(ask, X, reference(X, self.baseline), self.block)


@register("channel")
@dataclass(frozen=True)
class Lime(Surrogate):
    """The slopes of a linear model of the predicted class around the record, LIME.

    It is fitted to ``samples`` noisy copies of the record, with noise of ``scale`` standard
    deviations of each column of the records that are shown, and weights exp(−distance² / width²)
    where distances are in standard deviations and width is ``kernel`` · √d. ridge: its penalty, on
    slopes per standard deviation. Slopes are per unit of the feature, those of constant columns 0.
    Every record and every model is asked about the same noise. Costs 2 + samples queries per
    record.
    """

    name: ClassVar[str] = "lime"
    paper: ClassVar[str] = "Ribeiro et al. 2016, section 3"

    samples: int = 200
    scale: float = 1.0
    kernel: float = 0.75
    ridge: float = 1e-3
    seed: int = 0

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, d)."""
        whole_number("samples", self.samples, 1)
        magnitude("scale", self.scale, above=0.0)
        magnitude("kernel", self.kernel, above=0.0)
        magnitude("ridge", self.ridge)
        ask, X = self.asked(model, records)
        spread = X.std(axis=0)
        steps = np.random.default_rng(self.seed).normal(0, self.scale, (self.samples, X.shape[1]))
        square = (steps**2).sum(axis=1)
        weights = np.exp(-square / (self.kernel**2 * X.shape[1]))

        def in_deviations(steps: Floats, rows: Indices) -> Floats:
            return ask(X[rows] + steps * spread, rows)

        slopes = local_slopes(in_deviations, np.zeros_like(X), steps, weights, self.ridge)
        return np.where(spread > 0, slopes / np.where(spread > 0, spread, 1.0), 0.0)


@register("channel")
@dataclass(frozen=True)
class KernelShap(Surrogate):
    """The Shapley values of the features in the output of the predicted class, KernelSHAP.

    A feature that is absent takes its value from ``background`` records, drawn from those that are
    shown by the seed and by what they hold. samples: how many sets of features are tried; the
    values are exact where that is every set, 2^d − 2. None: 4 for each feature, at least 128.
    Costs 2 + (samples + 1) · background queries per record.
    """

    name: ClassVar[str] = "kernel-shap"
    paper: ClassVar[str] = "Lundberg & Lee 2017, section 4.1"

    background: int = 10
    samples: int | None = None
    seed: int = 0

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, d)."""
        whole_number("background", self.background, 1)
        ask, X = self.asked(model, records)
        d = X.shape[1]
        if d == 1:  # all of the difference is the one feature's
            coalitions, weights = np.ones((1, 1), dtype=bool), np.ones(1)
        else:
            coalitions, weights = self._coalitions(d)
        order = records.canonical_order()
        size = min(self.background, len(X))
        drawn = np.random.default_rng(self.seed).choice(len(X), size, replace=False)
        return shapley_values(ask, X, X[order[drawn]], coalitions, weights)

    def _coalitions(self, d: int) -> tuple[Bools, Floats]:
        default = max(_LEAST_COALITIONS, 4 * d)
        samples = default if self.samples is None else whole_number("samples", self.samples, 1)
        if samples >= 2**d - 2:
            return all_coalitions(d)
        if samples < 2 * d:
            raise InputError(
                f"The option samples must be at least {2 * d}, two for each of {d} features, got "
                f"{self.samples!r}"
            )
        return drawn_coalitions(d, samples, self.seed)


def _answers(
    ask: Ask, X: Floats, each: int, copies: Callable[[Floats], NDArray[np.float64]]
) -> Floats:
    """The answers to ``each`` copies of every record, (n, each), asked in large parts.

    copies: from records (r, d) to what is asked about them, (r, each, d).
    """
    found = np.empty((len(X), each))
    for rows in _parts(len(X), each * X.shape[1]):
        numbers = np.repeat(np.arange(len(X))[rows], each)
        queries = copies(X[rows]).reshape(len(numbers), -1)
        found[rows] = ask(queries, numbers).reshape(-1, each)
    return found


def _parts(n: int, numbers: int) -> Iterator[slice]:
    size = max(1, _NUMBERS // max(1, numbers))
    return (slice(first, first + size) for first in range(0, n, size))
