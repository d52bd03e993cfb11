"""How influential the first record of an explanation is: Figure 7 of Shokri, Strobel & Zick (2021).

Section 5.1.2: members and others have explanations of much the same influence, but for the members
whose explanation is their own record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import ks_2samp, kstwobign

from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.shokri_samples import (
    PAPER,
    TITLES,
    Sample,
    mean_over,
    samples,
    setup_of,
    with_others,
)
from leakscope.protocols import Bools, Floats
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 30
# Smaller influences are counted as this one: a logarithm has no place for 0.
LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Influences:
    """The largest |influence| on each member's (n,) and each other's (m,) prediction.

    own (n,): whether a member's is its own.
    """

    members: Floats
    others: Floats
    own: Bools

    @classmethod
    def of(cls, sample: Sample) -> Influences:
        """Those of a training set, and of as many others, or of all there are."""
        people = sample.population.X[sample.others[: len(sample.rows)]]
        shown, members = sample.models.explain(sample.features, 1)
        _, others = sample.models.explain(people, 1)
        own = shown[:, 0] == np.arange(len(shown))
        members, others = (np.maximum(np.abs(one[:, 0]), LEAST) for one in (members, others))
        return cls(members, others, own)

    @property
    def distances(self) -> tuple[float, float]:
        """The largest difference of the distribution functions, with and without the revealed."""
        hidden = self.members[~self.own]
        return _distance(self.members, self.others), _distance(hidden, self.others)


@register("experiment", "shokri-fig7", paper=f"{PAPER}, figure 7")
def largest_influences(setting: Setting) -> Experiment:
    """The influence of the most influential record on members and on others, as histograms."""
    found, missing = with_others(setting)
    measured = {
        one.name: [Influences.of(sample) for sample in samples(one, setting)] for one in found
    }
    rows = [row for name, parts in measured.items() for row in _histogram(name, parts)]
    return Experiment(
        experiment="shokri-fig7",
        paper=f"{PAPER}, figure 7",
        setup=setup_of(setting, found, k=1),
        rows=rows,
        paper_rows=[
            {
                "members_and_others": "similarly distributed",
                "without_the_revealed": "significantly different",
                "source": "section 5.1.2 on figure 7; no number is printed",
            }
        ],
        notes=[*_notes(measured), *missing],
        draw=partial(_draw, rows),
    )


def _distance(one: Floats, other: Floats) -> float:
    return float(ks_2samp(one, other, method="asymp").statistic)


def _histogram(name: str, parts: Sequence[Influences]) -> Iterator[dict[str, Any]]:
    """How many of all samples have an influence in each bin, in percent of members or others."""
    members, others = (
        np.concatenate([getattr(p, k) for p in parts]) for k in ("members", "others")
    )
    own = np.concatenate([part.own for part in parts])
    low, high = (f(np.append(members, others)) for f in (np.min, np.max))
    edges = np.geomspace(low, high, BINS + 1)
    edges[[0, -1]] = low, high  # exactly, so that nobody falls out by rounding
    shares = {
        "members": 100 * np.histogram(members, edges)[0] / len(members),
        "revealed": 100 * np.histogram(members[own], edges)[0] / len(members),
        "others": 100 * np.histogram(others, edges)[0] / len(others),
    }
    for at in range(BINS):
        yield {
            "dataset": name,
            "influence_from": float(edges[at]),
            "influence_to": float(edges[at + 1]),
            **{key: float(values[at]) for key, values in shares.items()},
        }


def _notes(measured: Mapping[str, Sequence[Influences]]) -> Iterator[str]:
    """How far members and others differ, with the revealed and without them."""
    for name, parts in measured.items():
        pairs = [part.distances for part in parts]
        whole, hidden = (mean_over(values).value for values in zip(*pairs, strict=True))
        chance = [_chance(len(part.members), len(part.others)) for part in parts]
        fewer = [_chance(int((~part.own).sum()), len(part.others)) for part in parts]
        alike = "as the paper says" if whole <= np.mean(chance) else "not as the paper says"
        apart = "as the paper says" if hidden > np.mean(fewer) else "not as the paper says"
        yield (
            f"{TITLES[name]}, Kolmogorov's distance of members from others: {whole:.3f}, where "
            f"chance stays below {np.mean(chance):.3f} nineteen times of twenty, {alike}; without "
            f"the revealed members {hidden:.3f}, where chance stays below {np.mean(fewer):.3f}, "
            f"{apart}."
        )


def _chance(n: int, m: int) -> float:
    """What the distance of n from m of one distribution is below nineteen times of twenty."""
    return float(kstwobign.ppf(0.95)) * math.sqrt(1 / n + 1 / m)


def _draw(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.shokri_drawing import Look, Panel, Series, panels

    def panel(name: str) -> Panel:
        own = [row for row in rows if row["dataset"] == name]
        edges = [*(row["influence_from"] for row in own), own[-1]["influence_to"]]

        def steps(title: str, key: str) -> Series:
            heights = [row[key] for row in own]
            return Series(title, edges, [*heights, heights[-1]])

        titles = {"members": "members", "others": "others", "revealed": "members revealed"}
        return Panel(TITLES[name], [steps(title, key) for key, title in titles.items()])

    names = dict.fromkeys(row["dataset"] for row in rows)
    look = Look("|influence| of the first record", "records, %", "steps", xlog=True)
    return panels([panel(name) for name in names], look)
