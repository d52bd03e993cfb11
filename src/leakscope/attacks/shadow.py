"""Shadow models: what models show of their own members teaches what the target's members look like.

Shokri et al. 2017, "Membership inference attacks against machine learning models", section V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from leakscope.attacks.learned import truth_first
from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence
from leakscope.probabilities import log_odds
from leakscope.protocols import CLASSIFICATION, Attack, Bools, Floats, Knowledge, Task
from leakscope.registry import register

Places = NDArray[np.intp]

# What a classifier is shown of r predictions (r, k) and their true classes: (r, d) numbers.
View = Callable[[Evidence], Floats]


@register("attack")
@dataclass(frozen=True)
class ShadowModels(Attack):
    """A classifier per class, taught by shadow models what predictions on members look like.

    rows: how many predictions teach the classifier of a class at most, as many of members as of
    others; fewer where many classes would make it slow. least: with fewer predictions of members,
    or of others, a class shares one classifier with all classes, which sees the true class first
    and the others sorted.
    """

    name: ClassVar[str] = "shadow"
    paper: ClassVar[str] = "Shokri et al. 2017, section V"
    channel: ClassVar[str] = "probabilities"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    knowledge: ClassVar[Knowledge] = "how it was trained, and records like its members"
    shadows: ClassVar[int] = 2

    rounds: int = 100
    leaves: int = 8
    rows: int = 20_000
    least: int = 100

    def score(self, evidence: Evidence) -> Floats:
        """The log-odds that the prediction is one on a member, (n,).

        Which side has more predictions must not be learned: its log-odds are taken out.
        """
        # Time grows with classes × rows × columns, of which there are as many as classes.
        rows = min(self.rows, 20_000_000 // evidence.classes**2)
        rng = np.random.default_rng(evidence.seed)
        scores = np.empty(len(evidence))
        shared = [np.empty(0, dtype=np.intp)]
        for label in range(evidence.classes):
            records = np.flatnonzero(evidence.labels == label)
            inside = evidence.shadow_membership[:, records].sum()
            outside = len(evidence.shadow_membership) * len(records) - inside
            if min(inside, outside, rows // 2) < self.least:
                shared.append(records)
            else:
                scores[records] = self._taught(evidence, records, records, rows, rng, _as_it_is)
        few = np.concatenate(shared)
        if len(few):
            everyone = np.arange(len(evidence))
            scores[few] = self._taught(evidence, everyone, few, self.rows, rng, truth_first)
        return scores

    def threshold(self, evidence: Evidence) -> float | None:
        """Even odds."""
        return 0.0

    def _taught(
        self,
        evidence: Evidence,
        teaching: Places,
        asked: Places,
        rows: int,
        rng: np.random.Generator,
        view: View,
    ) -> Floats:
        """The log-odds of the records asked about, from shadow models' predictions on others."""
        models, records, inside = _draw(evidence.shadow_membership, teaching, rows, rng)
        if inside.all() or not inside.any():
            raise NotApplicableError(
                f"The {len(evidence.shadow_membership)} shadow models were trained on all of the "
                "records or on none of them; train each on a part of them"
            )
        learner = HistGradientBoostingClassifier(
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=20,
            early_stopping=False,
            random_state=evidence.seed,
        ).fit(view(_predictions(evidence, models, records)), inside)
        before = np.log(inside.sum()) - np.log((~inside).sum())
        own = replace(
            evidence, observations=evidence.observations[asked], labels=evidence.labels[asked]
        )
        return np.asarray(log_odds(learner.predict_proba(view(own))[:, 1]) - before)


def _as_it_is(evidence: Evidence) -> Floats:
    return log_odds(evidence.observations)


def _draw(
    membership: Bools, records: Places, rows: int, rng: np.random.Generator
) -> tuple[Places, Places, Bools]:
    """Pairs of a model and one of the records, with whether it was trained on it; three (r,).

    At most half of the rows are drawn from either side.
    """
    inside = membership[:, records]
    drawn = []
    for side in (inside, ~inside):
        places = np.flatnonzero(side)
        if len(places) > rows // 2:
            places = rng.choice(places, rows // 2, replace=False, shuffle=False)
        drawn.append(places)
    models, places = np.divmod(np.concatenate(drawn), len(records))
    return models, records[places], np.arange(len(models)) < len(drawn[0])


def _predictions(evidence: Evidence, models: Places, records: Places) -> Evidence:
    """What each model shows of the record beside it: evidence of r records."""
    seen = np.empty((len(models), evidence.shadow_observations.shape[2]))
    for model in np.unique(models):
        rows = models == model
        seen[rows] = evidence.shadow_observations[int(model), records[rows]]
    return replace(evidence, observations=seen, labels=evidence.labels[records])
