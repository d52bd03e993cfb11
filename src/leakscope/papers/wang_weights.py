"""Figure 3 of Wang et al. (2020): how the weights of a network are distributed, defense by defense.

Of the weights of convolutional and linear layers; those that are exactly zero are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.wang_comparing import first_models
from leakscope.papers.wang_curves import SHOWN
from leakscope.papers.wang_setups import PAPER, first_there, setup_of
from leakscope.papers.wang_sizes import module_of
from leakscope.protocols import Floats, Model
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("prune", "minmax", "prune+minmax")
BINS = 61
# The share of all weights that the bins are wide enough for; the outermost take the rest.
INSIDE = 0.999


@register("experiment", "wang-fig3", paper=f"{PAPER}, figure 3")
def distributions_of_weights(setting: Setting) -> Experiment:
    """Histograms of weights: no defense, pruning, min-max, and both."""
    pool, missing = first_there(setting, SHOWN[setting.scale])
    models = first_models(pool, KINDS, setting)
    rows = histograms(pool.setup.name, {name: weights_of(one) for name, one in models.items()})
    return Experiment(
        experiment="wang-fig3",
        paper=f"{PAPER}, figure 3",
        setup=setup_of([pool], setting, models="the first seed of each", bins=BINS),
        rows=rows,
        paper_rows=[
            {"claim": "after pruning there are much fewer weights than without",
             "source": "sections 5.3 and 5.4"},
        ],
        notes=[*_notes(rows), *missing],
        draw=partial(_draw, rows),
    )  # fmt: skip


def weights_of(model: Model) -> Floats:
    """All weights of convolutional and linear layers of a network, (w,)."""
    from leakscope.networks.pruning import prunable

    found = prunable(module_of(model)).values()
    return np.concatenate([one.detach().numpy().ravel() for one in found]).astype(np.float64)


def histograms(setup: str, weights: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """How many weights of each defense are in each bin; the bins are the same for all.

    They are as wide as the weights that are not zero, but for one in a thousand of each network;
    the outermost bins hold those too.
    """
    others = {name: one[one != 0] for name, one in weights.items()}
    wide = max(float(np.quantile(np.abs(one), INSIDE)) for one in others.values())
    edges = np.linspace(-wide, wide, BINS + 1)
    rows = []
    for name, one in others.items():
        counts, _ = np.histogram(np.clip(one, -wide, wide), edges)
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
            rows.append(
                {
                    "setup": setup,
                    "defense": name,
                    "low_edge": float(low),
                    "high_edge": float(high),
                    "count": int(count),
                    "zeros": len(weights[name]) - len(one),
                }
            )
    return rows


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    for name in dict.fromkeys(str(row["defense"]) for row in rows):
        own = [row for row in rows if row["defense"] == name]
        left = sum(row["count"] for row in own)
        zeros = own[0]["zeros"]
        middle = sum(row["count"] * (row["low_edge"] + row["high_edge"]) ** 2 / 4 for row in own)
        yield (
            f"{own[0]['setup']}, {name}: {zeros:,} of {left + zeros:,} weights are zero; the "
            f"others have a root mean square of about {(middle / left) ** 0.5:.3f}."
        )


def _draw(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.wang_pictures import distributions

    return distributions(rows)
