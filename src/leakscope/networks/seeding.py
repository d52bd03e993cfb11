"""The randomness and the threads of torch: what a seed decides, and nothing else with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch


class Purpose(IntEnum):
    """What a stream of random numbers is for: each purpose of a seed has a stream of its own.

    Weights and dropout share one, as they do in torch. That networks are trained for longer, or in
    other batches, changes neither their first weights nor who is held out.
    """

    WEIGHTS = 0
    ORDER = 1
    HELD_OUT = 2
    HOOKS = 3


def generator(seed: int, purpose: Purpose) -> torch.Generator:
    """A new stream of random numbers: of a seed of 0 or more, for one purpose."""
    (state,) = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


@contextmanager
def drawing_from(stream: torch.Generator) -> Iterator[None]:
    """Let all that draws from torch's global state, such as dropout, draw from this stream.

    The stream is where it was left afterwards, and so is the global state.
    """
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(stream.get_state())
        try:
            yield
        finally:
            stream.set_state(torch.get_rng_state())


@contextmanager
def repeatable(threads: int = 1) -> Iterator[None]:
    """Work in so many threads, so that the same seed gives the same bits on the same machine.

    One thread adds in one order. Several may not, so that torch is then asked for its
    deterministic algorithms, and refuses what has none.
    """
    former = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled()
    lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(threads)
    if threads > 1:
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(former)
        torch.use_deterministic_algorithms(strict, warn_only=lenient)
