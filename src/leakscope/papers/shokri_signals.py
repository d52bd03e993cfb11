"""What goes with membership: Figure 3 of Shokri, Strobel & Zick (2021).

Section 4.3.3, third point: correlations between membership, the variance of the prediction vector
and the 1-norm of the gradient, by how overfitted the target is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from leakscope.attacks.explanations import prediction_variance
from leakscope.metrics.intervals import Interval
from leakscope.models.attributions import Output, attributions
from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.shokri_judging import correlation, grouped, over_targets, places, told
from leakscope.papers.shokri_parallel import each
from leakscope.papers.shokri_samples import PAPER, columns
from leakscope.papers.shokri_targets import Pool, Target, pools, setup_of, targets_of
from leakscope.protocols import Floats, Model
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERSHIP, VARIANCE = "membership", "Var(c)"
SURENESS = (MEMBERSHIP, VARIANCE)
NORMS: dict[Output, str] = {"logit": "‖∇logit‖₁", "probability": "‖∇probability‖₁"}
# Records whose gradients are held at once.
AT_ONCE = 1000


def gradient_norms(model: Model, X: Floats, output: Output) -> Floats:
    """The 1-norm of the gradient of the predicted class at each record (n, …), (n,)."""
    parts = (X[first : first + AT_ONCE] for first in range(0, len(X), AT_ONCE))
    return np.concatenate(
        [
            np.abs(attributions(model, part, output=output)).reshape(len(part), -1).sum(axis=1)
            for part in parts
        ]
    )


@register("experiment", "shokri-fig3", paper=f"{PAPER}, figure 3")
def correlated_signals(setting: Setting) -> Experiment:
    """How membership goes with the variance of predictions and the gradient's norm."""
    found, missing = pools(setting, wide=True)
    targets = targets_of(found, setting)
    made = each([partial(_correlations, one) for one in targets], setting, "correlating")
    pairs = list(zip(targets, made, strict=True))
    rows = [row for group in grouped(pairs, _level) for row in _rows(group)]
    return Experiment(
        experiment="shokri-fig3",
        paper=f"{PAPER}, figure 3",
        setup=setup_of(found, setting, intervals="Fisher's, over records"),
        rows=rows,
        paper_rows=[
            {"dataset": name, "claim": claim, "source": "section 4.3.3 on figure 3"}
            for name, claim in (
                ("purchase100", "Var(c) and ‖∇c‖₁ correlate with each other and with membership"),
                ("texas100", "the correlation between Var(c) and membership is negative"),
                ("cifar100", "some correlation, inverted as overfitting increases"),
            )
        ],
        notes=[*_notes(rows, found), *missing],
        draw=partial(_draw, rows, found),
    )


def _level(pair: tuple[Target, Any]) -> tuple[str, float | None]:
    return pair[0].source.name, pair[0].level


def _correlations(target: Target) -> dict[tuple[str, str], Interval]:
    """The correlation of each pair of signals of one target."""
    X = np.asarray(target.records.X, dtype=np.float64)
    variance = prediction_variance(target.model.predict_proba(X))
    members = target.membership.astype(np.float64)
    found = {SURENESS: correlation(members, variance)}
    for output in get_args(Output):
        norms = gradient_norms(target.model, X, output)
        found[MEMBERSHIP, NORMS[output]] = correlation(members, norms)
        found[VARIANCE, NORMS[output]] = correlation(variance, norms)
    return found


def _rows(
    group: Sequence[tuple[Target, Mapping[tuple[str, str], Interval]]],
) -> Iterator[dict[str, Any]]:
    place = places([target for target, _ in group])
    for pair in group[0][1]:
        together = over_targets([found[pair] for _, found in group])
        yield {**place, "one": pair[0], "other": pair[1], **columns("correlation", together)}


def _notes(rows: Sequence[Row], found: Sequence[Pool]) -> Iterator[str]:
    """The correlations after the last epoch, and which are there at all."""
    for pool in found:
        last = [r for r in rows if r["dataset"] == pool.source.name and r["level"] is None]
        parts = [
            f"{row['one']} with {row['other']} {told(row, 'correlation', 'correlation_low')}"
            for row in last
        ]
        sure = [r for r in last if r["correlation_low"] * r["correlation_high"] > 0]
        yield (
            f"{pool.source.title} after the last epoch: {'; '.join(parts)}; {len(sure)} of "
            f"{len(last)} are surely not 0."
        )
    last = [r for r in rows if r["level"] is None and (r["one"], r["other"]) == SURENESS]
    titles = {one.source.name: one.source.title for one in found}
    up = [titles[row["dataset"]] for row in last if row["correlation_low"] > 0]
    yield (
        "The paper draws sizes, and its caption says that Var(c) goes down with membership; here "
        f"it surely goes up for {', '.join(up) or 'none'}."
    )


def _draw(rows: Sequence[Row], found: Sequence[Pool]) -> Figure:
    from leakscope.papers.shokri_pictures import Curve, Sweep, picture

    def sizes(own: Sequence[Row], name: str) -> Curve:
        """The sizes of the correlations, as the paper draws them."""
        values = np.array([row["correlation"] for row in own])
        signs = np.where(values < 0, -1.0, 1.0)
        both = np.array([[row["correlation_low"], row["correlation_high"]] for row in own])
        low, high = np.sort(signs[:, None] * both, axis=1).T.tolist()
        return Curve(name, [row["gap"] for row in own], np.abs(values).tolist(), low, high)

    def panel(pool: Pool) -> Sweep:
        own = [row for row in rows if row["dataset"] == pool.source.name]
        pairs = dict.fromkeys((row["one"], row["other"]) for row in own)
        curves = [
            sizes([r for r in own if (r["one"], r["other"]) == pair], " ~ ".join(pair))
            for pair in pairs
        ]
        return Sweep(
            pool.source.title, curves, "train–test accuracy gap", "|correlation|", level=0.0
        )

    return picture([panel(one) for one in found])
