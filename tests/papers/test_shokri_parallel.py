from __future__ import annotations

from functools import partial

import pytest
import torch

from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_parallel import each


def squared(number: int) -> tuple[int, int]:
    """The square, and the threads that torch had for it."""
    return number * number, torch.get_num_threads()


@pytest.mark.slow
def test_results_keep_their_order_and_have_one_thread() -> None:
    tasks = [partial(squared, number) for number in range(5)]
    told: list[tuple[str, int, int]] = []
    threads = torch.get_num_threads()
    for workers in (1, 2):
        setting = Setting(workers=workers, progress=lambda *step: told.append(step))
        assert each(tasks, setting, "squaring") == [(n * n, 1) for n in range(5)]
    assert torch.get_num_threads() == threads
    assert told == [("squaring", done, 5) for done in range(6)] * 2


def test_no_task_is_no_result() -> None:
    assert each([], Setting(), "nothing") == []
