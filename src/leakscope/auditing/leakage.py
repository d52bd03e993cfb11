"""Leakage of the recipe, from the shadow models: what models made this way tell of each record.

It stands beside the attacks and says another thing. An attack is one adversary against the one
model that was audited; leakage is about all models made this way, on average, and about any
adversary who sees the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from leakscope.auditing.shadows import (
    LOSS,
    MARGIN,
    PARAMETERS,
    Dealing,
    ask_for,
    why_no_parameters,
)
from leakscope.errors import LeakscopeError, NotApplicableError
from leakscope.leakage.averaging import Leakage
from leakscope.leakage.gaussian import parameter_leakage
from leakscope.leakage.outputs import models_each_side, output_leakage
from leakscope.leakage.plans import Design
from leakscope.metrics.outcome import Outcome
from leakscope.protocols import Bools, Floats, Model, Progress
from leakscope.records import Records
from leakscope.trials import Trials

# Under these names the report says why a measure is missing.
OUTPUTS, WEIGHTS = "output leakage", "parameter leakage"


@dataclass(frozen=True, eq=False)
class Leaks:
    """What the report says of leakage, each record's share of it in nats (n,), what is missing."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    records: Floats | None = None
    not_run: dict[str, str] = field(default_factory=dict)

    @classmethod
    def unmeasured(cls, reason: str) -> Leaks:
        """Nothing, for this reason."""
        return cls(not_run=dict.fromkeys((OUTPUTS, WEIGHTS), reason))

    def beside(self, best: Outcome | None) -> list[dict[str, Any]]:
        """The entries for the report, with what the strongest attack achieved on this model."""
        achieved = best and {"attack": best.attack, "advantage": best.advantage.to_dict()}
        return [{**entry, "best_attack": achieved} for entry in self.entries]


def measure_leakage(
    trials: Trials,
    dealing: Dealing,
    model: Model,
    records: Records,
    clusters: NDArray[np.intp] | None,
    *,
    seed: int,
    progress: Progress,
) -> Leaks:
    """Leakage through outputs and, where there are few enough, through parameters.

    clusters (n,): records that count together.
    """
    options: dict[str, Any] = {
        "groups": records.groups,
        "unit": clusters,
        "seed": seed,
        "design": _design(dealing),
    }
    membership = trials.membership
    found: list[tuple[str, Leakage]] = []
    information, not_run = None, {}
    with threadpool_limits(limits=1):
        progress("measuring leakage through outputs", 0, 2)
        try:
            channel = _channel(trials, dealing)
            through = output_leakage(trials.observations[channel], membership, **options)
            information = through.mutual_information.records
            three = (through.mutual_information, through.divergence, through.advantage)
            found += [(channel, one) for one in three]
        except LeakscopeError as error:
            not_run[OUTPUTS] = str(error)
        progress("measuring leakage through parameters", 1, 2)
        try:
            if reason := why_no_parameters(model, records, dealing, seed):
                raise NotApplicableError(reason)
            parameters = trials.observations[PARAMETERS][:, 0]
            found.append((PARAMETERS, parameter_leakage(parameters, membership, **options)))
        except LeakscopeError as error:
            not_run[WEIGHTS] = str(error)
        progress("done", 2, 2)
    entries = [{**one.to_dict(), "channel": channel} for channel, one in found]
    return Leaks(entries, information, not_run)


def _design(dealing: Dealing) -> Design:
    """Shadow models are dealt like cards: those of one deck share few records, or all but few."""
    middle = np.arange(dealing.models) + 0.5
    together = np.floor(middle * dealing.smaller_share).astype(np.intp)

    def draw(seed: int) -> Bools:
        return np.asarray(dealing.deal(seed) == 1)

    return Design(together, draw)


def _channel(trials: Trials, dealing: Dealing) -> str:
    """The number that is seen of each record: the log-odds of its true class, or its loss."""
    channel = next((name for name in (MARGIN, LOSS) if name in trials.observations), None)
    if channel is None:
        raise NotApplicableError(
            "It is measured on probabilities or losses, and the shadow models show neither."
        )
    needed = models_each_side(width=1)
    if dealing.models_for(needed) > dealing.models:
        raise NotApplicableError(
            f"It takes {needed} shadow models with each record and {needed} without; "
            f"{ask_for(dealing.models_for(needed))}."
        )
    return channel
