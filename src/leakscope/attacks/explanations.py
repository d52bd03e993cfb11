"""Attacks through explanations: what explains a prediction shows how sure the model is of it.

Shokri, Strobel & Zick 2021, section 4.3.3. A model is surer of its members. Slopes are then small,
and what a gradient leaks is its 1-norm, for which one threshold or a small decision tree is enough;
it stands for the variance of the prediction. Contributions add up to the prediction, so that their
sum leaks. A forest on nine summaries sees the rest of what an explanation tells, also where noise
hides the norm. All see the channel of an explanation's summary, and none is written twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from leakscope.attacks.taught import Learned, TaughtAttack
from leakscope.evidence import Evidence
from leakscope.metrics.intervals import Interval
from leakscope.options import whole_number
from leakscope.probabilities import log_odds
from leakscope.protocols import BOTH, CLASSIFICATION, Attack, Bools, Floats, Task
from leakscope.registry import register

PAPER = "Shokri, Strobel & Zick 2021, section 4.3.3"

# The places of the 1-norm and of the sum among the summaries.
NORM, SUM = 0, 3
# The others that are of the explanation alone, without the features, and with which power of the
# 1-norm each grows.
POWERS = {1: 1, 2: 1, 3: 1, 5: 2, 6: 0, 7: 0}


@dataclass(frozen=True)
class SmallNorm(Attack):
    """A member where the explanation is small: its 1-norm is below a threshold."""

    paper: ClassVar[str] = PAPER
    tasks: ClassVar[frozenset[Task]] = BOTH
    on_request: ClassVar[bool] = True

    def score(self, evidence: Evidence) -> Floats:
        """Minus the 1-norm, (n,)."""
        return -evidence.observations[:, NORM]


@dataclass(frozen=True)
class LargeSum(Attack):
    """A member where the explanation adds up to much: its sum is above a threshold."""

    paper: ClassVar[str] = f"after {PAPER}"
    tasks: ClassVar[frozenset[Task]] = BOTH
    on_request: ClassVar[bool] = True

    def score(self, evidence: Evidence) -> Floats:
        """The sum of the explanation, (n,)."""
        return evidence.observations[:, SUM]


@dataclass(frozen=True)
class TaughtEstimator(TaughtAttack):
    """What the attacks share that teach a scikit-learn classifier some numbers of each record."""

    @abstractmethod
    def learner(self, seed: int) -> Any:
        """A fresh scikit-learn classifier."""

    @abstractmethod
    def numbers(self, evidence: Evidence) -> Floats:
        """What it is shown of each record, (n, d)."""

    def teach(self, known: Evidence, told: Bools) -> Learned:
        """The log-odds of the classifier, as far as probabilities clipped at 1e-7 tell them."""
        learner = self.learner(known.seed).fit(self.numbers(known), told)
        return lambda asked: log_odds(learner.predict_proba(self.numbers(asked))[:, 1])


@dataclass(frozen=True)
class SmallTree(TaughtEstimator):
    """What the attacks by a decision tree on one number share.

    depth, least: more than four questions, or leaves of fewer than fifty records, learn the noise.
    """

    depth: int = 4
    least: int = 50

    def learner(self, seed: int) -> DecisionTreeClassifier:
        """A tree of few leaves."""
        return DecisionTreeClassifier(
            max_depth=whole_number("depth", self.depth, 1),
            min_samples_leaf=whole_number("least", self.least, 1),
            random_state=seed,
        )

    def numbers(self, evidence: Evidence) -> Floats:
        """The number that members are taken to have more of, alone, (n, 1)."""
        return self.expected(evidence)[:, None]


@dataclass(frozen=True)
class NormTree(SmallTree):
    """A decision tree on the 1-norm of the explanation, taught by known members."""

    paper: ClassVar[str] = f"{PAPER} and Figure 2"

    def expected(self, evidence: Evidence) -> Floats:
        """Minus the 1-norm, (n,)."""
        return -evidence.observations[:, NORM]


@dataclass(frozen=True)
class SummaryForest(TaughtEstimator):
    """A forest on nine summaries of the explanation, taught by known members.

    By itself it expects nothing of members, as for explanations which are larger for them with one
    kind of model and smaller with another.
    """

    paper: ClassVar[str] = f"after {PAPER}"

    trees: int = 200
    least: int = 10

    def learner(self, seed: int) -> RandomForestClassifier:
        """A forest of trees whose leaves have some records."""
        return RandomForestClassifier(
            whole_number("trees", self.trees, 1),
            min_samples_leaf=whole_number("least", self.least, 1),
            random_state=seed,
        )

    def numbers(self, evidence: Evidence) -> Floats:
        """All summaries, (n, 9)."""
        return evidence.observations

    def expected(self, evidence: Evidence) -> Floats:
        """Nothing, (n,)."""
        return np.zeros(len(evidence))


@dataclass(frozen=True)
class SlopeForest(SummaryForest):
    """The forest where members have the smaller explanations."""

    def expected(self, evidence: Evidence) -> Floats:
        """Minus the 1-norm, (n,)."""
        return -evidence.observations[:, NORM]


@dataclass(frozen=True)
class ContributionForest(SummaryForest):
    """The forest where the explanations of members add up to more."""

    def expected(self, evidence: Evidence) -> Floats:
        """The sum, (n,)."""
        return evidence.observations[:, SUM]


@dataclass(frozen=True)
class NormalizedForest(SlopeForest):
    """A control: the forest on what is left of the summaries if every ‖φ‖₁ is made 1.

    If members are told by the size of their explanations this must fail (section 4.3.3, second
    point). It looks at φ alone: Σφx / ‖φ‖₁, how well the explanation fits the record, is no size,
    and tells members by itself. It is no attack of its own, and is found by no name.
    """

    name: ClassVar[str] = "normalized-forest"
    channel: ClassVar[str] = "gradient-summary"

    def numbers(self, evidence: Evidence) -> Floats:
        """The summaries of φ / ‖φ‖₁ that are not of the features too, (n, 6)."""
        sizes = evidence.observations[:, [NORM]]
        powers = np.array(list(POWERS.values()))
        return np.asarray(
            evidence.observations[:, list(POWERS)] / np.where(sizes > 0, sizes, 1.0) ** powers
        )


@register("attack")
@dataclass(frozen=True)
class PredictionVariance(Attack):
    """A member where the class probabilities vary much: where the prediction is near one class."""

    name: ClassVar[str] = "variance"
    paper: ClassVar[str] = PAPER
    channel: ClassVar[str] = "probabilities"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    on_request: ClassVar[bool] = True

    def score(self, evidence: Evidence) -> Floats:
        """The variance of the probabilities over the classes, (n,)."""
        return prediction_variance(evidence.observations)


@register("attack")
@dataclass(frozen=True)
class VarianceTree(SmallTree):
    """A decision tree on the variance of the class probabilities, taught by known members."""

    name: ClassVar[str] = "variance-tree"
    paper: ClassVar[str] = PAPER
    channel: ClassVar[str] = "probabilities"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def expected(self, evidence: Evidence) -> Floats:
        """The variance, (n,)."""
        return prediction_variance(evidence.observations)


def prediction_variance(probabilities: Floats) -> Floats:
    """The variance over the classes of each prediction (n, k), Var(c(x)) of the paper, (n,)."""
    return np.asarray(probabilities.var(axis=1))


def accuracy_of_gap(gap: Interval) -> Interval:
    """How accurate it is to guess membership by the train–test gap alone: ½ + gap / 2.

    The control beside every table of attacks: of whom the model is wrong about, nobody is taken
    for a member (Yeom et al. 2018, section 3.2).
    """
    return Interval(*(0.5 + one / 2 for one in (gap.value, gap.low, gap.high)))


@dataclass(frozen=True)
class Kind:
    """One way to attack through any explanation: the attack, and what it does in a sentence."""

    attack: type[Any]
    sentence: str


NORM_BELOW = Kind(SmallNorm, "A member where {} is small: its 1-norm is below a threshold.")
SUM_ABOVE = Kind(LargeSum, "A member where {} adds up to much: the model is sure.")
TREE = Kind(NormTree, "A decision tree on the 1-norm of {}, taught by known members.")
_FOREST = "A forest on nine summaries of {}, taught by known members."

# What is known before of an explanation: members have the smaller slopes, their contributions add
# up to more; of others either may be true.
SLOPES = {"norm": NORM_BELOW, "tree": TREE, "forest": Kind(SlopeForest, _FOREST)}
CONTRIBUTIONS = {"sum": SUM_ABOVE, "forest": Kind(ContributionForest, _FOREST)}
OTHERS = {"forest": Kind(SummaryForest, _FOREST)}


def attacks_through(explanation: str, words: str, kinds: Mapping[str, Kind]) -> list[type[Attack]]:
    """Attacks of these kinds through the summary of one explanation, each registered.

    Their names are that of the explanation with the kind behind it. words: what the explanation
    is, for the line that says what an attack does.
    """
    made = []
    for ending, kind in kinds.items():
        base = kind.attack
        title = "".join(part.capitalize() for part in explanation.split("-"))
        facts = {
            "__doc__": kind.sentence.format(words),
            "__module__": __name__,
            "name": f"{explanation}-{ending}",
            "channel": f"{explanation}-summary",
        }
        made.append(register("attack")(type(f"{title}{base.__name__}", (base,), facts)))
    return made


attacks_through("gradient", "the gradient of the predicted class's logit", SLOPES)
attacks_through("gradient-probability", "the gradient of the predicted class's probability", SLOPES)
attacks_through("smoothgrad", "the gradient averaged over noisy copies", SLOPES)
attacks_through("gradient-x-input", "the gradient times the features", CONTRIBUTIONS)
attacks_through("integrated-gradients", "the integrated gradient", CONTRIBUTIONS)
attacks_through("lrp", "the relevance of layer-wise propagation", CONTRIBUTIONS)
attacks_through("deeplift", "the contribution of DeepLIFT", CONTRIBUTIONS)
attacks_through("kernel-shap", "the vector of Shapley values", CONTRIBUTIONS)
attacks_through("lime", "the vector of LIME's slopes", OTHERS)
attacks_through("occlusion", "the vector of what the absence of each feature costs", OTHERS)
