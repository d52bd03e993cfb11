from __future__ import annotations

import pytest
import torch

from leakscope.networks.seeding import Purpose, drawing_from, generator, repeatable


def test_each_purpose_and_each_seed_has_a_stream_of_its_own() -> None:
    drawn = {
        (seed, purpose): torch.rand(3, generator=generator(seed, purpose))
        for seed in (0, 1, 2**32 - 1)
        for purpose in Purpose
    }
    assert len({tuple(numbers.tolist()) for numbers in drawn.values()}) == len(drawn)
    again = torch.rand(3, generator=generator(1, Purpose.ORDER))
    assert torch.equal(again, drawn[1, Purpose.ORDER])


def test_a_stream_takes_the_place_of_the_global_state_and_goes_on_where_it_was_left() -> None:
    before = torch.get_rng_state()
    stream = generator(5, Purpose.WEIGHTS)
    with drawing_from(stream):
        first = torch.rand(4)
    with drawing_from(stream):
        second = torch.rand(4)
    whole = torch.rand(8, generator=generator(5, Purpose.WEIGHTS))
    assert torch.equal(torch.cat([first, second]), whole)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_global_state_is_restored_after_an_error() -> None:
    before = torch.get_rng_state()

    def fail() -> None:
        with drawing_from(generator(5, Purpose.WEIGHTS)):
            torch.rand(1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_determinism_are_put_back(threads: int) -> None:
    former = torch.get_num_threads()

    def fail() -> None:
        with repeatable(threads):
            assert torch.get_num_threads() == threads
            # One thread is repeatable by itself, and pays nothing for it.
            assert torch.are_deterministic_algorithms_enabled() == (threads > 1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.get_num_threads() == former
    assert not torch.are_deterministic_algorithms_enabled()


def test_what_the_user_has_asked_for_is_kept() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with repeatable(2):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
