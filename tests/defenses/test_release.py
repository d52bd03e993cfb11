from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LinearRegression, LogisticRegression

from leakscope.channels.explanations import (
    DeepLift,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    PlainExplanation,
    SmoothGrad,
)
from leakscope.channels.influence import RecordExplanations, explained
from leakscope.channels.joined import Joined
from leakscope.channels.outputs import Label, Loss, Margin, Probabilities
from leakscope.channels.parameters import Parameters
from leakscope.channels.queries import NoisyMargin
from leakscope.channels.robustness import Robustness
from leakscope.channels.summaries import (
    GradientTimesInputSummary,
    LimeSummary,
    SmoothGradSummary,
)
from leakscope.channels.surrogates import Occlusion
from leakscope.defenses import as_defense
from leakscope.defenses.release import (
    ReleasedModel,
    Rounded,
    SmoothedExplanations,
    Temperature,
    TopK,
)
from leakscope.errors import InputError
from leakscope.models import as_model
from leakscope.probabilities import log_loss, logit_margin
from leakscope.protocols import Channel, WrappedModel
from leakscope.records import Records
from leakscope.registry import entries

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
RECORDS = Records(X, np.digitize(X[:, 0] + rng.normal(size=60) / 2, [-0.4, 0.4]))
FITTED = LogisticRegression(C=5.0, solver="newton-cholesky", tol=1e-10).fit(X, RECORDS.y)
MODEL = as_model(FITTED)
OWN = FITTED.predict_proba(X)
RELEASES = [TopK(1), Rounded(1), Temperature(4.0)]


def test_only_the_largest_are_shown() -> None:
    given = np.array([[0.5, 0.3, 0.15, 0.05], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]])
    found = TopK(2).released(given)
    expected = [[0.5, 0.3, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    assert TopK(4).released(given) is given
    assert TopK(9).released(given) is given
    two = np.array([[0.2, 0.8], [0.5, 0.5]])
    np.testing.assert_allclose(TopK(1).released(two), two, rtol=0, atol=1e-15)


def test_what_is_hidden_is_never_larger_than_what_is_shown() -> None:
    given = np.random.default_rng(1).dirichlet(np.full(6, 0.5), size=200)
    for k in range(1, 6):
        found = TopK(k).released(given)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_array_equal(found.argmax(axis=1), given.argmax(axis=1))
        for before, after in zip(given, found, strict=True):
            order = np.argsort(-before)
            np.testing.assert_array_equal(after[order[:k]], before[order[:k]])
            np.testing.assert_allclose(after[order[k:]], before[order[k:]].mean())


def test_digits_are_cut() -> None:
    found = Rounded(2).released(np.array([[0.333333, 0.333333, 0.333333], [0.995, 0.004, 0.001]]))
    np.testing.assert_allclose(found, [[0.33, 0.33, 0.33], [0.99, 0.0, 0.0]], atol=0.01 + 1e-12)
    np.testing.assert_array_equal(found, np.round(found, 2))
    np.testing.assert_array_equal(Rounded(0).released(np.array([[0.7, 0.3]])), [[1.0, 0.0]])


def test_logits_are_divided_by_the_temperature() -> None:
    logits = np.random.default_rng(2).normal(size=(30, 5)) * 3
    found = Temperature(4.0).released(softmax(logits, axis=1))
    np.testing.assert_allclose(found, softmax(logits / 4, axis=1), rtol=1e-12)
    sure = Temperature(4.0).released(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
    np.testing.assert_allclose(sure, [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], atol=1e-15)


@pytest.mark.parametrize("defense", RELEASES, ids=str)
def test_every_channel_of_answers_sees_the_released_ones(defense: Any) -> None:
    shown = defense.released(OWN)
    assert not np.allclose(shown, OWN)

    def seen(channel: Channel) -> Any:
        wrapped = defense.wrap_channel(channel)
        assert wrapped.width(MODEL) == channel.width(MODEL)
        return wrapped.observe(MODEL, RECORDS)

    np.testing.assert_array_equal(seen(Probabilities()), shown)
    np.testing.assert_array_equal(seen(Loss())[:, 0], log_loss(shown, RECORDS.y))
    np.testing.assert_array_equal(seen(Margin())[:, 0], logit_margin(shown, RECORDS.y))
    np.testing.assert_array_equal(seen(NoisyMargin())[:, 0], logit_margin(shown, RECORDS.y))
    noisy = NoisyMargin().observe(ReleasedModel(MODEL, defense), RECORDS)
    np.testing.assert_array_equal(seen(NoisyMargin()), noisy)
    assert not np.allclose(seen(Occlusion()), Occlusion().observe(MODEL, RECORDS))
    assert not np.allclose(seen(LimeSummary()), LimeSummary().observe(MODEL, RECORDS))
    np.testing.assert_array_equal(seen(Robustness()), Robustness().observe(MODEL, RECORDS))


@pytest.mark.parametrize("defense", RELEASES, ids=str)
def test_which_channels_are_left_alone(defense: Any) -> None:
    channels = {entry.name: entry.thing() for entry in entries("channel")}
    alone = {name for name, one in channels.items() if defense.wrap_channel(one) is one}
    gradients = {name for name, one in channels.items() if "gradients" in one.needs}
    assert alone == {"label", "parameters", "records"} | gradients
    for name in channels.keys() - alone:
        wrapped = defense.wrap_channel(channels[name])
        assert wrapped.channel is channels[name]
        for what in ("name", "paper", "tasks", "needs", "scope"):
            assert getattr(wrapped, what) == getattr(channels[name], what)
        assert pickle.loads(pickle.dumps(wrapped)) == wrapped
        assert defense.budget(None, 3) is None


@pytest.mark.parametrize("defense", RELEASES, ids=str)
def test_the_model_that_is_seen_keeps_its_labels(defense: Any) -> None:
    model = ReleasedModel(MODEL, defense)
    assert isinstance(model, WrappedModel)
    np.testing.assert_array_equal(model.predict(X), MODEL.predict(X))
    np.testing.assert_array_equal(model.parameters(), Parameters().observe(MODEL, RECORDS)[0])
    np.testing.assert_array_equal(
        Gradient("probability").observe(model, RECORDS),
        Gradient("probability").observe(MODEL, RECORDS),
    )


def test_beside_each_other_only_answers_change() -> None:
    joined = Joined((Gradient(), Label(), Probabilities(), RecordExplanations(k=2)))
    model = explained(MODEL, RECORDS)
    plain = joined.observe(model, RECORDS)
    found = TopK(1).wrap_channel(joined).observe(model, RECORDS)
    np.testing.assert_array_equal(found[:, 4:7], TopK(1).released(OWN))
    np.testing.assert_array_equal(np.delete(found, [4, 5, 6], 1), np.delete(plain, [4, 5, 6], 1))


def test_what_is_wrapped_first_is_done_first() -> None:
    one = TopK(1).wrap_channel(Rounded(1).wrap_channel(Probabilities()))
    expected = TopK(1).released(Rounded(1).released(OWN))
    np.testing.assert_array_equal(one.observe(MODEL, RECORDS), expected)
    other = Rounded(1).wrap_channel(TopK(1).wrap_channel(Probabilities()))
    expected = Rounded(1).released(TopK(1).released(OWN))
    np.testing.assert_array_equal(other.observe(MODEL, RECORDS), expected)
    assert not np.array_equal(one.observe(MODEL, RECORDS), expected)
    assert one.channel.channel == Probabilities()  # type: ignore[attr-defined]


def test_numbers_are_shown_as_they_are() -> None:
    records = Records(X, X @ [1.0, 2.0, 3.0] + rng.normal(size=60))
    model = as_model(LinearRegression().fit(X, records.y))
    wrapped = Rounded(0).wrap_channel(Loss())
    np.testing.assert_array_equal(wrapped.observe(model, records), Loss().observe(model, records))


@pytest.mark.parametrize(
    ("channel", "smooth"),
    [
        (GradientTimesInput(), SmoothGrad(of="gradient-x-input", sigma=0.5)),
        (Gradient("probability"), SmoothGrad("probability", sigma=0.5)),
        (DeepLift(), SmoothGrad(of="deeplift", sigma=0.5)),
        (SmoothGrad(sigma=1.2, seed=3), SmoothGrad(sigma=1.3, seed=3)),
        (
            GradientTimesInputSummary(),
            GradientTimesInputSummary(SmoothGrad(of="gradient-x-input", sigma=0.5)),
        ),
        (SmoothGradSummary(SmoothGrad(sigma=1.2)), SmoothGradSummary(SmoothGrad(sigma=1.3))),
        (Joined((Gradient(), Label())), Joined((SmoothGrad(sigma=0.5), Label()))),
    ],
    ids=str,
)
def test_explanations_become_smooth_under_their_own_name(channel: Any, smooth: Any) -> None:
    wrapped = SmoothedExplanations(0.5).wrap_channel(channel)
    assert (wrapped.name, wrapped.channel) == (channel.name, channel)  # type: ignore[attr-defined]
    assert wrapped.width(MODEL) == channel.width(MODEL)
    found = wrapped.observe(MODEL, RECORDS)
    np.testing.assert_array_equal(found, smooth.observe(MODEL, RECORDS))


@pytest.mark.parametrize(
    "channel",
    [Label(), Margin(), Occlusion(), LimeSummary(), Joined((Label(), Margin())), Parameters()],
    ids=str,
)
def test_what_follows_no_gradient_is_left_alone(channel: Any) -> None:
    assert SmoothedExplanations(0.5).wrap_channel(channel) is channel
    released = TopK(1).wrap_channel(channel)
    assert SmoothedExplanations(0.5).wrap_channel(released) is released


def test_smoothing_and_releasing_combine_in_either_order() -> None:
    smooth, joined = SmoothedExplanations(0.5), Joined((Gradient("probability"), Probabilities()))
    expected = np.hstack(
        [
            SmoothGrad("probability", sigma=0.5).observe(MODEL, RECORDS),
            TopK(1).released(OWN),
        ]
    )
    for wrapped in (
        smooth.wrap_channel(TopK(1).wrap_channel(joined)),
        TopK(1).wrap_channel(smooth.wrap_channel(joined)),
    ):
        np.testing.assert_array_equal(wrapped.observe(MODEL, RECORDS), expected)


def test_smoothing_twice_adds_the_variances() -> None:
    once = SmoothedExplanations(3.0).wrap_channel(GradientTimesInput())
    twice = SmoothedExplanations(4.0).wrap_channel(once)
    expected = SmoothGrad(of="gradient-x-input", sigma=5.0).observe(MODEL, RECORDS)
    np.testing.assert_array_equal(twice.observe(MODEL, RECORDS), expected)


@dataclass(frozen=True)
class Mine(PlainExplanation):
    name: ClassVar[str] = "mine"

    def explain(self, model: Any, X: Any, start: Any, target: Any = None) -> Any:
        return X


@pytest.mark.parametrize("channel", [IntegratedGradients(steps=10), Mine()], ids=str)
def test_other_explanations_are_refused(channel: Any) -> None:
    with pytest.raises(InputError, match="cannot be smoothed: SmoothGrad is of gradient, "):
        SmoothedExplanations(0.5).wrap_channel(channel)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TopK(0), "k must be a whole number of at least 1, got 0"),
        (lambda: as_defense("top-k:1.5"), "k must be a whole number of at least 1, got 1.5"),
        (lambda: Rounded(-1), "digits must be a whole number of at least 0, got -1"),
        (lambda: Temperature(0.0), "t must be a finite number above 0, got 0.0"),
        (lambda: SmoothedExplanations(0.0), "sigma must be a finite number above 0, got 0.0"),
        (lambda: SmoothedExplanations(samples=0), "samples must be a whole number of at least 1"),
        (lambda: SmoothedExplanations(seed=-1), "seed must be a whole number of at least 0"),
    ],
)
def test_options_are_checked_at_once(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize("written", ["top-k:3", "round:4", "temperature:1.5", "smoothgrad:0.1"])
def test_it_is_read_as_it_is_written(written: str) -> None:
    assert str(as_defense(written)) == written
    assert replace(as_defense(written)) == as_defense(written)  # type: ignore[type-var]
