"""Explanations compared: Figure 12 of Shokri, Strobel & Zick (2021), appendix C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from leakscope.attacks.network import GradientNetwork
from leakscope.auditing.choosing import attack_of
from leakscope.channels.explanations import (
    DeepLift,
    Explanation,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    Relevance,
    SmoothGrad,
)
from leakscope.channels.outputs import Label
from leakscope.channels.summaries import summarize
from leakscope.metrics.intervals import Interval
from leakscope.models.attributions import Output
from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.shokri_gradients import training_of
from leakscope.papers.shokri_judging import ends, grouped, judged, over_targets, places, told
from leakscope.papers.shokri_parallel import each
from leakscope.papers.shokri_samples import PAPER
from leakscope.papers.shokri_targets import Target, first_wide, setup_of, targets_of
from leakscope.protocols import Attack
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In the order of the paper's figure, from what leaks most to what leaks least; ours last.
METHODS: dict[str, Callable[[Output], Explanation]] = {
    "gradient": Gradient,
    "integrated gradients": lambda output: IntegratedGradients(output, steps=20),
    "DeepLIFT": DeepLift,
    "LRP": Relevance,
    "SmoothGrad": lambda output: SmoothGrad(output, sigma=0.2, samples=20),
    "gradient × input": GradientTimesInput,
}
PAPER_ORDER = ("gradient", "integrated gradients", "DeepLIFT", "LRP", "SmoothGrad")


@register("experiment", "shokri-fig12", paper=f"{PAPER}, figure 12")
def compared_methods(setting: Setting) -> Experiment:
    """The accuracy of attacks through several methods of explanation, side by side."""
    pool, missing = first_wide(setting)
    targets = targets_of([pool], setting, levels=False)
    jobs = [(target, method, output) for method in METHODS for output in get_args(Output)
            for target in targets]  # fmt: skip
    tasks = [partial(_attack, *job, training_of(setting)) for job in jobs]
    found = each(tasks, setting, "explaining and attacking")
    pairs = zip(jobs, found, strict=True)
    rows = [row for group in grouped(pairs, lambda pair: pair[0][1:]) for row in _rows(group)]
    return Experiment(
        experiment="shokri-fig12",
        paper=f"{PAPER}, figure 12",
        setup=setup_of(
            [pool],
            setting,
            attacks="the attack network on the whole explanation, a forest on nine summaries of "
            "it, a tree on its 1-norm; cross-fitted",
            integrated_gradients="20 nodes from a baseline of zeros",
            smoothgrad="σ = 0.2, 20 copies",
        ),
        rows=rows,
        paper_rows=[
            {"method": "integrated gradients", "claim": "very similar to the gradient"},
            {"method": "LRP and DeepLIFT", "claim": "worse than the gradient"},
            {"method": "SmoothGrad", "claim": "the attack fails"},
        ],
        notes=[*_notes(rows), *missing],
        draw=partial(_draw, rows),
    )


def _attack(
    target: Target, method: str, output: Output, training: dict[str, Any]
) -> dict[str, Interval]:
    """The accuracy of each attack through one method; the network sees logits' explanations."""
    shown = METHODS[method](output).observe(target.model, target.records)
    X = np.asarray(target.records.X, dtype=np.float64).reshape(len(shown), -1)
    summaries = summarize(shown, X)
    attacks: dict[str, tuple[Attack, Any]] = {
        "forest": (attack_of("lime-forest"), summaries),  # which expects nothing of members
        "tree": (attack_of("gradient-tree"), summaries),
    }
    if output == "logit":
        predicted = Label().observe(target.model, target.records)
        attacks["network"] = (GradientNetwork(**training), np.hstack([shown, predicted]))
    return {name: judged(target, *both).accuracy for name, both in attacks.items()}


def _rows(
    group: Sequence[tuple[tuple[Target, str, Output], dict[str, Interval]]],
) -> Iterator[dict[str, Any]]:
    place = places([job[0] for job, _ in group])
    _, method, output = group[0][0]
    for attack in group[0][1]:
        accuracy = over_targets([found[attack] for _, found in group])
        yield {**place, "method": method, "output": output, "attack": attack, **ends(accuracy)}


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """Whether the paper's order comes out for each attack, and what SmoothGrad is left with."""
    for attack, output in dict.fromkeys((row["attack"], row["output"]) for row in rows):
        own = {r["method"]: r for r in rows if (r["attack"], r["output"]) == (attack, output)}
        ranked = sorted(own, key=lambda method: -own[method]["attack_accuracy"])
        parts = ", ".join(f"{method} {told(own[method])}" for method in ranked)
        kept = [method for method in ranked if method in PAPER_ORDER] == list(PAPER_ORDER)
        smooth = "at chance" if own["SmoothGrad"]["low"] <= 0.5 else "above chance"
        yield (
            f"The {attack} on the {output}: {parts}; the order gradient, integrated gradients, "
            f"DeepLIFT, LRP, SmoothGrad {'comes out' if kept else 'does not come out'}; "
            f"SmoothGrad is {smooth}."
        )


def _draw(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.shokri_pictures import Bars, picture

    def panel(output: Output) -> Bars:
        own = {(r["method"], r["attack"]): r for r in rows if r["output"] == output}
        methods = list(dict.fromkeys(method for method, _ in own))
        attacks = list(dict.fromkeys(attack for _, attack in own))
        values, low, high = (
            np.array([[own[method, attack][key] for attack in attacks] for method in methods])
            for key in ("attack_accuracy", "low", "high")
        )
        title = f"explanations of the {output}"
        return Bars(title, methods, attacks, values, low, high, "attack accuracy", level=0.5)

    return picture([panel(output) for output in get_args(Output)])
