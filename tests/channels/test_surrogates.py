from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.channels import surrogates
from leakscope.channels.surrogates import KernelShap, Lime, Occlusion
from leakscope.errors import InputError, NotApplicableError
from leakscope.models import as_model
from leakscope.records import Records

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 4))
RECORDS = Records(X, np.arange(8) % 2)
SLOPES = np.array([1.0, -2.0, 0.5, 3.0])


def straight(X):
    return X @ SLOPES + 1.0


def bent(X):
    X = X.reshape(len(X), -1)
    return X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.3 * X[:, 3] ** 2


def odds(X):
    p = 1 / (1 + np.exp(-bent(X)))
    return np.column_stack([1 - p, p])


STRAIGHT = as_model(straight, task="regression")
BENT = as_model(bent, task="regression")
CHANNELS = [Lime(), KernelShap(background=3), Occlusion()]


def shapley(value, d):
    """By the definition: the average gain of a feature over all orders in which they come."""
    found = np.zeros(d)
    for feature in range(d):
        others = [one for one in range(d) if one != feature]
        for size in range(d):
            for chosen in combinations(others, size):
                weight = factorial(size) * factorial(d - size - 1) / factorial(d)
                found[feature] += weight * (value((*chosen, feature)) - value(chosen))
    return found


def background_of(channel, records):
    """The records that stand for absent features, in the way the channel says it."""
    order = records.canonical_order()
    drawn = np.random.default_rng(channel.seed).choice(len(X), channel.background, replace=False)
    return X[order[drawn]]


def definition(f, x, background):
    def value(chosen):
        mixed = background.copy()
        mixed[:, list(chosen)] = x[list(chosen)]
        return f(mixed).mean()

    return shapley(value, len(x))


class TestKernelShap:
    def test_few_features_have_exact_shapley_values(self):
        channel = KernelShap(background=3)
        found = channel.observe(BENT, RECORDS)
        start = background_of(channel, RECORDS)
        want = [definition(bent, x, start) for x in X]
        np.testing.assert_allclose(found, want, atol=1e-10)

    def test_of_the_predicted_class(self):
        channel = KernelShap(background=3)
        found = channel.observe(as_model(odds), RECORDS)
        start = background_of(channel, RECORDS)
        for x, own in zip(X, found, strict=True):
            best = int(bent(x[None])[0] > 0)
            want = definition(lambda Z, best=best: odds(Z)[:, best], x, start)
            np.testing.assert_allclose(own, want, atol=1e-10)

    def test_a_sample_is_exact_for_a_linear_model_and_adds_up_for_any(self):
        wide = RNG.normal(size=(5, 12))
        slopes = RNG.normal(size=12)
        records = Records(wide, np.zeros(5))
        channel = KernelShap(background=5, samples=60)
        found = channel.observe(as_model(lambda Z: Z @ slopes, task="regression"), records)
        np.testing.assert_allclose(found, (wide - wide.mean(axis=0)) * slopes, atol=1e-10)
        found = channel.observe(BENT, records)
        np.testing.assert_allclose(found.sum(axis=1), bent(wide) - bent(wide).mean())

    def test_more_samples_come_nearer_to_the_exact_values(self):
        wide = RNG.normal(size=(3, 9))
        records = Records(wide, np.zeros(3))

        def f(Z):
            return np.tanh(Z).prod(axis=1) * 50 + Z[:, 0] * Z[:, 8]

        model = as_model(f, task="regression")
        exact = KernelShap(background=2, samples=510).observe(model, records)
        errors = [
            np.abs(KernelShap(background=2, samples=s, seed=1).observe(model, records) - exact)
            for s in (18, 500)
        ]
        assert errors[1].max() < 0.5 * errors[0].max()

    def test_one_feature_has_all_of_it(self):
        records = Records(X[:, :1], np.zeros(8))
        model = as_model(lambda Z: Z[:, 0] ** 2, task="regression")
        found = KernelShap(background=8).observe(model, records)
        np.testing.assert_allclose(found[:, 0], X[:, 0] ** 2 - (X[:, 0] ** 2).mean())

    def test_too_few_samples_are_refused(self):
        with pytest.raises(InputError, match="at least 8, two for each of 4 features"):
            KernelShap(samples=7).observe(BENT, RECORDS)

    def test_weights_are_those_of_the_paper(self):
        masks, weights = surrogates.all_coalitions(4)
        assert len(masks) == 14
        by_size = {int(mask.sum()): weight for mask, weight in zip(masks, weights, strict=True)}
        assert by_size == pytest.approx({1: 3 / 12, 2: 3 / 24, 3: 3 / 12})

    def test_sets_are_drawn_by_their_weight_with_their_complements(self):
        masks, weights = surrogates.drawn_coalitions(5, 20000, 3)
        assert masks.shape == (20000, 5)
        assert (weights == 1).all()
        assert (masks.sum(axis=0) == 10000).all()
        ones = (masks.sum(axis=1) == 1).mean()
        want = (1 / 4) / (1 / 4 + 1 / 6 + 1 / 6 + 1 / 4)
        assert ones == pytest.approx(want, abs=5 * np.sqrt(0.25 / 10000))


class TestLime:
    def test_a_linear_model_has_its_coefficients(self):
        found = Lime(ridge=0.0).observe(STRAIGHT, RECORDS)
        np.testing.assert_allclose(found, np.tile(SLOPES, (8, 1)), atol=1e-10)

    def test_the_log_odds_of_a_regression_have_its_coefficients(self):
        fitted = LogisticRegression().fit(X, RECORDS.y)
        found = Lime(output="logit", ridge=0.0).observe(as_model(fitted), RECORDS)
        sign = np.where(fitted.predict(X) == 1, 1.0, -1.0)[:, None]
        np.testing.assert_allclose(found, sign * fitted.coef_, atol=1e-8)

    def test_the_fit_is_the_weighted_ridge_regression(self):
        from sklearn.linear_model import Ridge

        channel = Lime(samples=30, scale=0.5, kernel=0.6, ridge=0.7, seed=4)
        found = channel.observe(BENT, RECORDS)
        noise = np.random.default_rng(4).normal(0, 0.5, (30, 4))
        steps = np.vstack([np.zeros(4), noise])
        weights = np.exp(-((steps**2).sum(axis=1)) / (0.36 * 4))
        spread = X.std(axis=0)
        for x, own in zip(X, found, strict=True):
            fitted = Ridge(alpha=0.7).fit(steps, bent(x + steps * spread), sample_weight=weights)
            np.testing.assert_allclose(own, fitted.coef_ / spread, atol=1e-8)

    def test_a_constant_column_has_no_slope(self):
        constant = X.copy()
        constant[:, 1] = 3.0
        found = Lime(ridge=0.0).observe(STRAIGHT, Records(constant, RECORDS.y))
        assert (found[:, 1] == 0).all()
        np.testing.assert_allclose(found[:, 3], 3.0)


class TestOcclusion:
    def test_by_hand(self):
        mean = X.mean(axis=0)
        want = (X - mean) * SLOPES
        np.testing.assert_allclose(Occlusion().observe(STRAIGHT, RECORDS), want, atol=1e-12)
        found = Occlusion(baseline="zero").observe(STRAIGHT, RECORDS)
        np.testing.assert_allclose(found, X * SLOPES, atol=1e-12)

    def test_a_block_shares_what_it_does_evenly(self):
        found = Occlusion(baseline="zero", block=3).observe(STRAIGHT, RECORDS)
        first = (X[:, :3] @ SLOPES[:3]) / 3
        want = np.column_stack([first, first, first, X[:, 3] * SLOPES[3]])
        np.testing.assert_allclose(found, want, atol=1e-12)

    def test_of_the_predicted_class(self):
        found = Occlusion(baseline="zero").observe(as_model(odds), RECORDS)
        best = odds(X).argmax(axis=1)
        for feature in range(4):
            without = X.copy()
            without[:, feature] = 0
            want = (odds(X) - odds(without))[np.arange(8), best]
            np.testing.assert_allclose(found[:, feature], want, atol=1e-12)

    def test_images_are_asked_about_as_images(self):
        images = Records(X.reshape(8, 2, 2), RECORDS.y)
        shapes = set()

        def see(Z):
            shapes.add(Z.shape[1:])
            return odds(Z)

        found = Occlusion().observe(as_model(see), images)
        np.testing.assert_allclose(found, Occlusion().observe(as_model(odds), RECORDS))
        assert shapes == {(2, 2)}


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
class TestAll:
    def test_the_model_is_asked_few_times_and_no_more_than_is_said(self, channel):
        asked = []

        def count(Z):
            asked.append(len(Z))
            return bent(Z)

        channel.observe(as_model(count, task="regression"), RECORDS)
        each = {
            "lime": 2 + 200,
            "kernel-shap": 2 + (14 + 1) * 3,
            "occlusion": 2 + 4,
        }[channel.name]
        assert sum(asked) <= 8 * each
        assert len(asked) <= 3

    def test_parts_change_nothing(self, channel, monkeypatch):
        want = channel.observe(BENT, RECORDS)
        monkeypatch.setattr(surrogates, "_NUMBERS", 1)
        np.testing.assert_allclose(channel.observe(BENT, RECORDS), want, atol=1e-12)

    def test_the_order_of_records_changes_nothing(self, channel):
        order = np.random.default_rng(1).permutation(8)
        want = channel.observe(BENT, RECORDS)[order]
        np.testing.assert_allclose(channel.observe(BENT, RECORDS.take(order)), want, atol=1e-10)

    def test_tables_of_numbers_do_and_text_does_not(self, channel):
        table = pd.DataFrame(X, columns=list("abcd"))
        fitted = as_model(LogisticRegression().fit(table, RECORDS.y))
        plain = as_model(LogisticRegression().fit(X, RECORDS.y))
        np.testing.assert_allclose(
            channel.observe(fitted, Records(table, RECORDS.y)), channel.observe(plain, RECORDS)
        )
        assert channel.width(fitted) == 4
        with pytest.raises(NotApplicableError, match="column 'b'"):
            channel.observe(fitted, Records(table.assign(b="x"), RECORDS.y))

    def test_a_function_cannot_say_its_width(self, channel):
        with pytest.raises(NotApplicableError, match="how many features"):
            channel.width(BENT)

    def test_options_are_checked(self, channel):
        wrong = {
            "lime": {"samples": 0}, "kernel-shap": {"background": 0}, "occlusion": {"block": 0},
        }[channel.name]  # fmt: skip
        for options in (wrong, {"output": "odds"}):
            with pytest.raises(InputError, match=next(iter(options))):
                type(channel)(**options).observe(BENT, RECORDS)
