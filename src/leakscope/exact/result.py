"""The leakage of each record, with intervals, and what it implies for an adversary."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.exact.checks import checked_records
from leakscope.exact.renyi import (
    Direction,
    Statement,
    epsilon_leakage,
    largest_orders,
    renyi_leakage,
)
from leakscope.metrics.gaussian import max_divergence
from leakscope.metrics.intervals import Interval, finite, tail_of
from leakscope.metrics.jackknife import interval_of_largest, root_ends
from leakscope.metrics.likelihood_ratio import mutual_information, total_variation_integral
from leakscope.options import whole_number
from leakscope.protocols import Floats, Indices


@dataclass(frozen=True)
class Exposed:
    """One record of whom much is told: its leakage on average, of an order, and as ε at δ."""

    record: int
    rho_kl: Interval
    order: float
    renyi: float
    largest_order: float
    delta: float
    epsilon: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "record": self.record,
            "rho_kl": self.rho_kl.to_dict(),
            "order": self.order,
            "renyi": finite(self.renyi),
            "largest_order": finite(self.largest_order),
            "delta": self.delta,
            "epsilon": finite(self.epsilon),
        }


@dataclass(frozen=True, eq=False)
class RidgeLeakage:
    """What a released ridge regression tells of the membership of each of r records, in nats.

    records (r,): which they are, of the ``population``; n: how many train a model; draws: how many
    training sets were drawn. rho_kl (r,): Kullback–Leibler divergence, both ways summed, of the
    Gaussians fitted to the models with and without the record. In a finite population and without
    noise the models are finitely many, and it is the fit that makes this finite.

    kept (r,): the draws that counted for a record. replicates (r, G): rho_kl without each group of
    draws. mean_with, mean_without (r, p) and cov_with, cov_without (r, p, p): the Gaussians.
    """

    records: Indices
    population: int
    n: int
    draws: int
    rho_kl: Floats
    kept: Indices = field(repr=False)
    replicates: Floats = field(repr=False)
    mean_with: Floats = field(repr=False)
    cov_with: Floats = field(repr=False)
    mean_without: Floats = field(repr=False)
    cov_without: Floats = field(repr=False)
    confidence: float = 0.95

    @property
    def prior(self) -> float:
        """How many records of the population are members, as a share."""
        return self.n / self.population

    @property
    def gaussians(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean and covariance with the record, then without: what every divergence takes."""
        return self.mean_with, self.cov_with, self.mean_without, self.cov_without

    @cached_property
    def low(self) -> Floats:
        """The lower end of the interval of each record, (r,), for the error of finite draws."""
        return root_ends(self.rho_kl, self.replicates, tail_of(self.confidence))[0]

    @cached_property
    def high(self) -> Floats:
        """The upper end, (r,)."""
        return root_ends(self.rho_kl, self.replicates, tail_of(self.confidence))[1]

    @cached_property
    def mean(self) -> Interval:
        """The mean over these records, its interval for the error of finite draws."""
        return self.mean_of()

    @cached_property
    def population_mean(self) -> Interval:
        """The mean over the population, if these are a random sample of it.

        Its interval adds the error of looking at some records only.
        """
        return self._interval(slice(None), sampled=True)

    def mean_of(self, rows: ArrayLike | None = None) -> Interval:
        """The mean over some of these records: indices into them or a mask (r,) of a group."""
        if rows is None:
            return self._interval(slice(None))
        return self._interval(checked_records(rows, len(self.rho_kl)))

    @cached_property
    def rho_mi(self) -> Floats:
        """Mutual information of membership and model at the true prior n / N, (r,)."""
        return mutual_information(*self.gaussians, prior=self.prior)

    @cached_property
    def rho_mi_balanced(self) -> Floats:
        """Mutual information of membership and model if each is as likely in as out, (r,)."""
        return mutual_information(*self.gaussians)

    @cached_property
    def total_variation(self) -> Floats:
        """The advantage of the best adversary where models are as the fitted Gaussians, (r,).

        Real models of a finite population without noise may tell all: see ``rho_kl``.
        """
        return total_variation_integral(*self.gaussians).value

    @cached_property
    def advantage_bound(self) -> Floats:
        """What rho_kl says that advantage cannot exceed, ½√rho_kl and at most 1, (r,).

        Farokhi & Kaafar 2020, theorem 1, where it is printed for a success probability.
        """
        return np.minimum(np.sqrt(self.rho_kl) / 2, 1.0)

    @cached_property
    def largest(self) -> Interval:
        """The largest rho_kl of these records: what the mean hides."""
        tail = tail_of(self.confidence) / len(self.records)
        lows, _ = root_ends(self.rho_kl, self.replicates, tail)
        return interval_of_largest(self.rho_kl, lows, self.high)

    def renyi(self, order: float, direction: Direction = "both") -> Floats:
        """The Rényi divergence of an order above 1, (r,), the larger of both directions.

        It weighs the models that tell more of the record than the average one; infinite from the
        record's largest_order on.
        """
        return renyi_leakage(self.gaussians, order, direction)

    @cached_property
    def largest_order(self) -> Floats:
        """The order below which Rényi divergences are finite in both directions, (r,)."""
        return largest_orders(self.gaussians)

    @cached_property
    def max_divergence(self) -> Floats:
        """The most that any model speaks for the record, the largest log-likelihood ratio, (r,).

        Infinite unless the models with the record vary less than those without in every direction.
        """
        return max_divergence(*self.gaussians)

    def epsilon(
        self, delta: float, statement: Statement = "ratio", direction: Direction = "both"
    ) -> Floats:
        """What ln of the likelihood ratio exceeds with probability delta at the most, (r,).

        So sure of a record can an adversary become who knows both distributions, the fitted
        Gaussians. With "privacy", no event is e^ε times as likely with the record than without,
        but for delta: it is said of this record among random others and of the fit, and is not
        differential privacy.
        """
        return epsilon_leakage(self.gaussians, delta, statement, direction)

    def worst(self, k: int = 10, order: float = 2.0, delta: float = 1e-5) -> tuple[Exposed, ...]:
        """The k records of whom most is told by rho_kl, the first the worst.

        The largest of many estimates are too large by chance: ``ridge_worst_case`` with another
        seed measures those again, with intervals for every figure.
        """
        whole_number("k", k, 1)
        first = np.argsort(-self.rho_kl, kind="stable")[:k]
        mean1, cov1, mean0, cov0 = (part[first] for part in self.gaussians)
        renyi = renyi_leakage((mean1, cov1, mean0, cov0), order)
        epsilon = epsilon_leakage((mean1, cov1, mean0, cov0), delta)
        return tuple(
            Exposed(
                record=int(self.records[row]),
                rho_kl=Interval(
                    float(self.rho_kl[row]), float(self.low[row]), float(self.high[row])
                ),
                order=order,
                renyi=float(renyi[place]),
                largest_order=float(self.largest_order[row]),
                delta=delta,
                epsilon=float(epsilon[place]),
            )
            for place, row in enumerate(first)
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the averages over the records, and the largest."""
        return {
            "n": self.n,
            "population": self.population,
            "records": len(self.records),
            "draws": self.draws,
            "rho_kl": self.mean.to_dict(),
            "largest_rho_kl": self.largest.to_dict(),
            "population_mean": self.population_mean.to_dict(),
            "rho_mi": float(self.rho_mi.mean()),
            "rho_mi_balanced": float(self.rho_mi_balanced.mean()),
            "total_variation": float(self.total_variation.mean()),
            "advantage_bound": float(self.advantage_bound.mean()),
        }

    def _interval(self, rows: Any, sampled: bool = False) -> Interval:
        """The mean over these rows; ``sampled`` adds the error of their being a sample."""
        values = self.rho_kl[rows]
        spread = 0.0
        if sampled and len(values) < self.population:
            left = 1 - len(values) / self.population
            spread = left / len(values) * (values.var(ddof=1) if len(values) > 1 else math.inf)
        mean, replicates = values.mean(), self.replicates[rows].mean(axis=0)
        low, high = root_ends(mean, replicates, tail_of(self.confidence), spread)
        return Interval(float(mean), float(low), float(high))
