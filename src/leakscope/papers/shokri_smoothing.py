"""SmoothGrad as a defense: Figure 4 of Shokri, Strobel & Zick (2021), and what it costs.

Section 4.5 and appendix C: the gradient averaged over noisy copies of a record. By the number of
copies and the size of the noise: the 1-norms of members and others, what attacks are left with, and
how true the explanation still is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from leakscope.attacks.explanations import NORM
from leakscope.auditing.choosing import attack_of
from leakscope.channels.explanations import Gradient, SmoothGrad
from leakscope.channels.summaries import summarize
from leakscope.metrics.intervals import Interval
from leakscope.models import class_numbers
from leakscope.models.attributions import Output
from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_fidelity import infidelity, outputs_of, sensitivity
from leakscope.papers.shokri_judging import grouped, judged, over_targets, told
from leakscope.papers.shokri_parallel import each
from leakscope.papers.shokri_samples import PAPER, columns, mean_over
from leakscope.papers.shokri_targets import Target, first_wide, setup_of, targets_of
from leakscope.protocols import Floats
from leakscope.records import Records
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMAS: dict[Scale, tuple[float, ...]] = {
    "quick": (0.2, 0.5, 1.0),
    "full": (0.05, 0.1, 0.2, 0.5, 1.0),
}
SAMPLES: dict[Scale, tuple[int, ...]] = {"quick": (1, 5, 20), "full": (1, 2, 5, 10, 20, 50)}
# Records that fidelity is measured on, changes of each, and how large they are: the deviation of
# those that should be explained, and the limit of those that should not matter (captum's own).
ASKED, CHANGES, DEVIATION, RADIUS = 100, 10, 0.1, 0.02
# Where the noise is drawn beside the number of the data's seed.
STREAM = 4
# Records of each side in the picture, and the noise that it shows.
SHOWN, SHOWN_SIGMA = 200, 0.2


@dataclass(frozen=True)
class Smoothing:
    """An explanation: of which output, with how much noise, over how many copies; 0 is none."""

    output: Output
    sigma: float
    samples: int

    @property
    def channel(self) -> Gradient | SmoothGrad:
        """The channel that shows it."""
        if self.samples == 0:
            return Gradient(self.output)
        return SmoothGrad(self.output, sigma=self.sigma, samples=self.samples)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What came out for one target: 1-norms (n,), accuracies, and the two measures of fidelity."""

    norms: Floats
    norm_attack: Interval
    forest_attack: Interval
    infidelity: float
    sensitivity: float


@register("experiment", "shokri-fig4", paper=f"{PAPER}, figure 4")
def smoothed_gradients(setting: Setting) -> Experiment:
    """The 1-norm of smoothed gradients, what attacks are left with, and the fidelity it costs."""
    pool, missing = first_wide(setting)
    targets = targets_of([pool], setting, levels=False)
    kinds = list(_kinds(setting.scale))
    # Those of most copies first: they take longest.
    jobs = sorted(((t, k) for k in kinds for t in targets), key=lambda job: -job[1].samples)
    found = each([partial(smooth, *job) for job in jobs], setting, "smoothing")
    made = sorted(zip(jobs, found, strict=True), key=lambda pair: kinds.index(pair[0][1]))
    groups = [*grouped(made, lambda pair: pair[0][1])]
    rows = [_row(group) for group in groups]
    clouds = {group[0][0][1]: group[0][1].norms for group in groups}
    return Experiment(
        experiment="shokri-fig4",
        paper=f"{PAPER}, figure 4",
        setup=setup_of(
            [pool],
            setting,
            noise="N(0, σ²) in the units of the features; the class is that of the record itself",
            infidelity=f"of {ASKED} records by {CHANGES} changes from N(0, {DEVIATION:g}²), in "
            "units of that of an explanation of 0",
            sensitivity=f"the median of {ASKED} records, {CHANGES} changes of at most {RADIUS:g}",
        ),
        rows=rows,
        paper_rows=[
            {"claim": "one additional sample makes membership inference fail",
             "source": "figure 4"},
            {"claim": "only after a larger number of samples all points have a low 1-norm",
             "source": "figure 4"},
            {"claim": "the attack fails for SmoothGrad", "source": "appendix C"},
        ],
        notes=[*_notes(rows), *missing],
        draw=partial(_draw, rows, clouds, targets[0].membership),
    )  # fmt: skip


def _kinds(scale: Scale) -> Iterator[Smoothing]:
    for output in get_args(Output):
        yield Smoothing(output, 0.0, 0)
        for sigma in SIGMAS[scale]:
            for samples in SAMPLES[scale]:
                yield Smoothing(output, sigma, samples)


def smooth(target: Target, kind: Smoothing) -> Smoothed:
    """Explain all records of a target in one way, attack that, and look how true it is."""
    X = np.asarray(target.records.X, dtype=np.float64)
    shown = kind.channel.observe(target.model, target.records)
    summaries = summarize(shown, X.reshape(len(X), -1))
    by_norm, by_forest = (
        judged(target, attack_of(f"smoothgrad-{name}"), summaries).accuracy
        for name in ("norm", "forest")
    )
    return Smoothed(summaries[:, NORM], by_norm, by_forest, *_fidelity(target, kind, shown))


def _fidelity(target: Target, kind: Smoothing, shown: Floats) -> tuple[float, float]:
    """The infidelity, in units of what there is to explain, and the sensitivity, in the median."""
    few = target.records.take(np.arange(min(ASKED, len(shown))))
    X = np.asarray(few.X, dtype=np.float64)
    explanations, model = shown[: len(X)].reshape(X.shape), target.model
    classes = class_numbers(model, model.predict(X)).astype(np.intp)
    rng = np.random.default_rng([target.seed, STREAM])
    changes = rng.normal(0.0, DEVIATION, (CHANGES, *X.shape))
    steps = rng.uniform(-RADIUS, RADIUS, (CHANGES, *X.shape))

    def outputs(asked: Floats) -> Floats:
        return outputs_of(model, asked.reshape(X.shape), classes, kind.output)

    def explain(asked: Floats) -> Floats:
        return kind.channel.observe(model, Records(asked.reshape(X.shape), few.y))

    flat = X.reshape(len(X), -1)
    phi, first, second = (
        explanations.reshape(flat.shape),
        changes.reshape(CHANGES, *flat.shape),
        steps.reshape(CHANGES, *flat.shape),
    )
    # An explanation of 0 misses all of what changes do.
    nothing = infidelity(outputs, flat, np.zeros_like(phi), first).mean()
    missed = infidelity(outputs, flat, phi, first).mean()
    # In the median: where an explanation is next to 0 its relative change has no bounds.
    return float(missed / nothing), float(np.median(sensitivity(explain, flat, phi, second)))


def _row(group: Sequence[tuple[tuple[Target, Smoothing], Smoothed]]) -> dict[str, Any]:
    """The mean over targets."""
    kind, made = group[0][0][1], [one for _, one in group]
    sides = [(one.norms, target.membership) for (target, _), one in group]
    return {
        "output": kind.output,
        "sigma": kind.sigma,
        "samples": kind.samples,
        "norm_members": float(np.mean([np.median(norms[inside]) for norms, inside in sides])),
        "norm_others": float(np.mean([np.median(norms[~inside]) for norms, inside in sides])),
        **columns("norm_accuracy", over_targets([one.norm_attack for one in made])),
        **columns("forest_accuracy", over_targets([one.forest_attack for one in made])),
        **columns("infidelity", mean_over([one.infidelity for one in made])),
        **columns("sensitivity", mean_over([one.sensitivity for one in made])),
    }


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """What the noise and what the number of copies does, for each output."""
    for output in get_args(Output):
        own = [row for row in rows if row["output"] == output]
        plain, most = own[0], max(row["samples"] for row in own)
        yield (
            f"Plain gradient of the {output}: 1-norm attack {_accuracy(plain, 'norm')}, forest "
            f"{_accuracy(plain, 'forest')}, infidelity {plain['infidelity']:.3f}, sensitivity "
            f"{plain['sensitivity']:.3f}."
        )
        for row in (row for row in own if row["samples"] == most):
            yield (
                f"The {output}, σ = {row['sigma']:g}, {most} copies: 1-norm attack "
                f"{_accuracy(row, 'norm')}, {_chance(row, 'norm')}; forest "
                f"{_accuracy(row, 'forest')}, {_chance(row, 'forest')}; infidelity "
                f"{row['infidelity']:.3f}, sensitivity {row['sensitivity']:.3f}."
            )
        one = [row for row in own if row["samples"] == 1]
        tried = ", ".join(f"{row['sigma']:g}" for row in one)
        failed = [f"{row['sigma']:g}" for row in one if row["norm_accuracy_low"] <= 0.5]
        yield (
            f"The {output}: a single noisy copy, where the paper has attacks fail already, brings "
            f"the 1-norm attack to chance at {len(failed)} of the σ {tried}"
            f"{': ' + ', '.join(failed) if failed else ''}."
        )
    yield (
        "What SmoothGrad resists depends on the attacker: the forest looks at nine summaries of "
        "the same explanation. Infidelity is in units of that of an explanation of 0, which is 1; "
        "more is worse than none."
    )


def _accuracy(row: Row, attack: str) -> str:
    return told(row, f"{attack}_accuracy", f"{attack}_accuracy_low")


def _chance(row: Row, attack: str) -> str:
    return "at chance" if row[f"{attack}_accuracy_low"] <= 0.5 else "above chance"


def _draw(
    rows: Sequence[Row], norms: dict[Smoothing, Floats], membership: np.ndarray[Any, Any]
) -> Figure:
    from leakscope.papers.shokri_pictures import Cloud, Sweep, curve, picture

    sigmas = list(dict.fromkeys(row["sigma"] for row in rows if row["samples"]))
    shown = min(sigmas, key=lambda sigma: abs(sigma - SHOWN_SIGMA))
    kinds = [one for one in norms if one.output == "logit" and one.sigma in (0.0, shown)]
    few = np.concatenate([np.flatnonzero(side)[:SHOWN] for side in (membership, ~membership)])
    values = np.column_stack([norms[one][few] for one in kinds])
    counts = [float(one.samples) for one in kinds]
    label = "number of samples"
    cloud = Cloud(
        f"logit, σ = {shown:g}", counts, values, membership[few], label, "1-norm of the gradient"
    )

    def sweep(output: Output) -> Sweep:
        own = [row for row in rows if row["output"] == output and row["samples"]]
        curves = [
            curve(
                [row for row in own if row["sigma"] == sigma],
                f"{attack}, σ = {sigma:g}",
                "samples",
                f"{attack}_accuracy",
                (f"{attack}_accuracy_low", f"{attack}_accuracy_high"),
            )
            for attack in ("norm", "forest")
            for sigma in sigmas
        ]
        title = f"attacks on the {output}"
        return Sweep(title, curves, label, "attack accuracy", level=0.5, xlog=True)

    return picture([cloud, *(sweep(output) for output in get_args(Output))])
