from __future__ import annotations

import math
import warnings

import pytest
from opacus.accountants import PRVAccountant, RDPAccountant

from leakscope.errors import InputError
from leakscope.leakage.mechanism import gaussian_epsilon
from leakscope.networks.accounting import Sampling, epsilon_of, noise_for, spent

FULL = Sampling(1.0, 4)


def test_as_many_updates_as_the_usual_training_has() -> None:
    assert Sampling.of(45, 8, 3) == Sampling(8 / 45, 18)
    assert Sampling.of(41, 8, 3) == Sampling(8 / 41, 15)  # the last record joins the others
    assert Sampling.of(10, 32, 5) == Sampling(1.0, 5)


@pytest.mark.parametrize(("accountant", "kind"), [("rdp", RDPAccountant), ("prv", PRVAccountant)])
def test_what_is_spent_is_what_opacus_says(accountant: str, kind: type) -> None:
    noise = noise_for(6.28, 1e-5, FULL, accountant)
    theirs = kind()
    theirs.history = [(noise, FULL.rate, FULL.updates)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.get_epsilon(1e-5)
    assert epsilon_of(6.28, 1e-5, FULL, accountant) == expected
    assert spent(theirs, 6.28, 1e-5) == expected
    assert 6.27 <= expected <= 6.28


@pytest.mark.parametrize(("accountant", "looseness"), [("rdp", 0.5), ("prv", 0.02)])
def test_without_sampling_updates_are_one_gaussian_mechanism(
    accountant: str, looseness: float
) -> None:
    # Four updates of everybody with noise s are one of noise s/2, whose ε is known exactly.
    noise = noise_for(6.28, 1e-5, FULL, accountant)
    exact = gaussian_epsilon(noise / math.sqrt(4), 1e-5, 1.0)
    assert exact <= epsilon_of(6.28, 1e-5, FULL, accountant) <= exact + looseness


def test_a_larger_epsilon_needs_less_noise() -> None:
    noises = [noise_for(epsilon, 1e-5, FULL, "rdp") for epsilon in (0.5, 2.0, 8.0, 1000.0)]
    assert noises == sorted(noises, reverse=True)


def test_what_cannot_be_shown_is_refused() -> None:
    said = "No noise is enough to show an epsilon of 0.05 at a delta of 1e-05 for 4 updates"
    with pytest.raises(InputError, match=f"{said} by the accountant 'rdp'; give a larger"):
        noise_for(0.05, 1e-5, FULL, "rdp")
    assert noise_for(0.05, 1e-5, FULL, "prv") > 50
