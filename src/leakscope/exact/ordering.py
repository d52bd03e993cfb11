"""The influence of training records on a prediction, ordered exactly also where it rounds to 0.

A prediction is the log-odds a of its label against all others, and a record's absence changes them
by Δ. With D = Δ if a ≥ 0 and −Δ if not, the probability of the label changes by

    σ(a) − σ(a + Δ) = −sign(Δ) · σ(−|a|) · |e^−D − 1| / (1 + e^(−|a| − D)),

in which nothing cancels, and its log-loss by ln(1 + u), u = σ(−a)(e^−Δ − 1). At log-odds of 10,000
these are 0 in floating point for every record. What differs between the records of one prediction
is the factor beside σ, and its logarithm still has all digits: there they are compared by that.
Changes so large that they lead to the other class are taken as plain differences: these have all
digits too, and where they round to the same number they round to the same one for all, so that no
rounding error decides. Equal numbers are decided by |Δ|, then by the record's number.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit, logsumexp, softmax

from leakscope.protocols import Floats, Indices, Labels

Measure = Literal["probability", "log-loss", "squared-error"]

_FAR = 600.0  # log-odds beyond which influences are not compared as they are: e^−708 is the least


def odds_against_others(logits: Floats, moved: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Log-odds (r, 1) of each label against all others, and their changes (r, n).

    logits (r, C), and what is added to them without each record, (r, n, C).
    """
    rows = np.arange(len(logits))
    others = logits - logits[rows, labels][:, None]
    others[rows, labels] = -np.inf
    base = -logsumexp(others, axis=1)[:, None]
    moved = moved - moved[rows, :, labels][..., None]
    shares = softmax(others, axis=1)
    with np.errstate(over="ignore"):
        total = np.einsum("rc,rnc->rn", shares, np.expm1(moved))
    changes = -np.log1p(np.where(np.abs(total) < 0.5, total, 0.0))
    far = np.nonzero(~(np.abs(total) < 0.5))
    changes[far] = -logsumexp((others + base)[far[0]] + moved[far], axis=1)
    return base, changes


def influence_of(measure: Measure, base: Floats, changes: Floats) -> Floats:
    """How much the loss of q predictions rises without each record, (q, n).

    base (q, 1): the log-odds of the label, or the error of the prediction for squared errors.
    changes (q, n): by how much that is changed.
    """
    if measure == "squared-error":
        return changes * (2 * base + changes)
    with np.errstate(over="ignore", invalid="ignore"):
        if measure == "log-loss":
            values = expit(-base) * np.expm1(-changes)
            large = ~(np.abs(values) < 0.5)
            np.log1p(values, out=values, where=~large)
        else:
            signs = np.where(base >= 0, 1.0, -1.0)
            values = -signs * changes
            np.expm1(values, out=values)
            large = values > 1.0
            below = (values + 1.0) * np.exp(-np.abs(base)) + 1.0
            values *= signs * expit(-np.abs(base))
            values /= below
    if large.any():
        values[large] = _difference(measure, base, changes)[large]
    return values


def influence_order(measure: Measure, base: Floats, changes: Floats) -> Floats:
    """Numbers (q, n) that rise with the size of the influence within each row."""
    orders = np.abs(influence_of(measure, base, changes))
    if measure == "probability":
        far = np.flatnonzero(np.abs(base[:, 0]) > _FAR)
        orders[far] = _log_probability(base[far], changes[far])
    elif measure == "log-loss":  # that of an unlikely label does not vanish
        far = np.flatnonzero(base[:, 0] > _FAR)
        orders[far] = _log_log_loss(base[far], changes[far])
    return orders


def most_influential(measure: Measure, base: Floats, changes: Floats, k: int) -> Indices:
    """The k records of largest influence on each prediction, the first the largest, (q, k).

    On either side of 0, the larger the change of log-odds the larger the influence, so that it is
    enough to compare the k lowest and the k highest changes: 2k records in place of n.
    """
    n = changes.shape[1]
    every = np.ones(len(changes), dtype=np.bool_)
    chosen = np.empty((len(changes), k), dtype=np.intp)
    if measure != "squared-error" and 2 * k < n:
        low, high = _ends(changes, k)
        rows, records = np.nonzero((changes <= low) | (changes >= high))
        # Where changes are tied at an end, all records are compared.
        every = np.bincount(rows, minlength=len(changes)) > 2 * k
        few = records[~every[rows]].reshape(-1, 2 * k)
        at_ends = np.take_along_axis(changes[~every], few, 1)
        places = first_of(influence_order(measure, base[~every], at_ends), at_ends, k)
        chosen[~every] = np.take_along_axis(few, places, 1)
    if every.any():
        orders = influence_order(measure, base[every], changes[every])
        chosen[every] = first_of(orders, changes[every], k)
    return chosen


def first_of(orders: Floats, changes: Floats, k: int) -> Indices:
    """The places of the k largest orders in each row, the largest first, (q, k)."""
    n = orders.shape[1]
    sizes = np.abs(changes)
    part = np.argpartition(orders, n - k, axis=1)[:, n - k :]
    chosen = _sorted(part, np.take_along_axis(orders, part, 1), np.take_along_axis(sizes, part, 1))
    least = np.take_along_axis(orders, chosen[:, -1:], 1)
    # Where more records reach the last place than there are places, the tie is decided by hand.
    for row in np.flatnonzero(np.count_nonzero(orders >= least, axis=1) > k):
        tied = np.flatnonzero(orders[row] >= least[row])
        chosen[row] = _sorted(tied[None], orders[row, tied][None], sizes[row, tied][None])[0, :k]
    return chosen


def ranks_of(orders: Floats, changes: Floats, records: Indices) -> Indices:
    """The place of one record for each prediction (q,), 1 if it comes first."""
    sizes, rows = np.abs(changes), np.arange(len(orders))
    order, size = orders[rows, records, None], sizes[rows, records, None]
    numbers = np.arange(orders.shape[1])
    tied = (orders == order) & ((sizes > size) | ((sizes == size) & (numbers < records[:, None])))
    ranks: Indices = 1 + np.count_nonzero((orders > order) | tied, axis=1)
    return ranks


def _ends(changes: Floats, k: int) -> tuple[Floats, Floats]:
    """The k-th lowest and the k-th highest change of each row, both (q, 1)."""
    if k == 1:
        return changes.min(axis=1, keepdims=True), changes.max(axis=1, keepdims=True)
    last = changes.shape[1] - k
    parted = np.partition(changes, (k - 1, last), axis=1)
    return parted[:, k - 1 : k], parted[:, last : last + 1]


def _difference(measure: Measure, base: Floats, changes: Floats) -> Floats:
    """The influence as a difference of two losses, of probabilities in their smaller form."""
    if measure == "log-loss":
        return _softplus(-base - changes) - _softplus(-base)
    signs = np.where(base >= 0, 1.0, -1.0)
    return signs * (expit(-signs * (base + changes)) - expit(-np.abs(base)))


def _log_probability(base: Floats, changes: Floats) -> Floats:
    """ln of |change of the probability| / σ(−|base|)."""
    far = np.abs(base)
    towards = np.where(base >= 0, changes, -changes)
    orders = _log_expm1(-towards) - _softplus(-far - towards)
    gain = _softplus(far) - _softplus(far + towards)
    across = gain > 1.0
    return np.where(across, gain + np.log1p(-np.exp(-np.maximum(gain, 1.0))), orders)


def _log_log_loss(base: Floats, changes: Floats) -> Floats:
    """ln of |change of the log-loss| / σ(−base)."""
    shared = _softplus(base)
    factor = _log_expm1(-changes)
    with np.errstate(divide="ignore"):
        plain = np.log(np.abs(_difference("log-loss", base, changes))) + shared
    # Below this, ln(1 + u) is u to the last digit.
    return np.where(factor - shared < -40.0, factor, plain)


def _softplus(x: Floats) -> Floats:
    """ln(1 + eˣ)."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _log_expm1(x: Floats) -> Floats:
    """ln|eˣ − 1|, −∞ at 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(x, 0.0) + np.log(-np.expm1(-np.abs(x)))


def _sorted(records: Indices, orders: Floats, sizes: Floats) -> Indices:
    places = np.lexsort((records, -sizes, -orders), axis=1)
    return np.take_along_axis(records, places, 1)
