"""How much noise private training needs, and what it spends: opacus' accountants."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier

from leakscope.errors import InputError
from leakscope.networks.training import bounds

# How near the target the noise is chosen: by so much of ε, or by this share of it if that is less.
NEAR, NEAR_SHARE = 0.01, 0.01


@dataclass(frozen=True)
class Sampling:
    """How records are drawn: with which probability each, for how many updates."""

    rate: float
    updates: int

    @staticmethod
    def of(n: int, batch_size: int, epochs: int) -> Sampling:
        """Batches of n records of this size on average, as many as the usual training has."""
        return Sampling(min(1.0, batch_size / n), epochs * len(bounds(n, batch_size)))


@lru_cache(maxsize=256)
def noise_for(epsilon: float, delta: float, sampling: Sampling, accountant: str) -> float:
    """The least noise, in units of the clipping bound, that spends no more than ε."""
    near = _nearness(epsilon)
    options = {"eps_error": near} if accountant == "prv" else {}
    with _quiet():
        try:
            return float(
                get_noise_multiplier(
                    target_epsilon=epsilon,
                    target_delta=delta,
                    sample_rate=sampling.rate,
                    steps=sampling.updates,
                    accountant=accountant,
                    epsilon_tolerance=near,
                    **options,
                )
            )
        except ValueError as error:  # "The privacy budget is too low."
            raise InputError(
                f"No noise is enough to show an epsilon of {epsilon:g} at a delta of {delta:g} for "
                f"{sampling.updates} updates by the accountant {accountant!r}; give a larger one, "
                "or the accountant 'prv', which shows smaller ones than 'rdp'"
            ) from error


@lru_cache(maxsize=256)
def epsilon_of(epsilon: float, delta: float, sampling: Sampling, accountant: str) -> float:
    """The ε that is spent with the noise for this epsilon, a little less than it."""
    account = create_accountant(accountant)
    noise = noise_for(epsilon, delta, sampling, accountant)
    account.history = [(noise, sampling.rate, sampling.updates)]
    return spent(account, epsilon, delta)


def spent(account: Any, epsilon: float, delta: float) -> float:
    """The ε of the updates that an accountant was told of, with noise for this epsilon."""
    options = {"eps_error": _nearness(epsilon)} if account.mechanism() == "prv" else {}
    with _quiet():
        return float(account.get_epsilon(delta, **options))


def _nearness(epsilon: float) -> float:
    return min(NEAR, NEAR_SHARE * epsilon)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what an accountant says of the orders that it tried on the way."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
