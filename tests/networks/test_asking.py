from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from leakscope.networks.asking import as_inputs, with_rows

X = np.arange(6.0).reshape(3, 2)


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("scale", torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("module", "dtype"),
    [
        (nn.Linear(2, 1), torch.float32),
        (nn.Linear(2, 1).half(), torch.float16),
        (Buffered(), torch.float64),
        (nn.Tanh(), torch.float32),
    ],
    ids=str,
)
def test_features_take_the_type_of_what_the_module_holds(module, dtype):
    inputs = as_inputs(module, X)
    assert inputs.dtype is dtype
    assert inputs.tolist() == X.tolist()


@pytest.mark.filterwarnings("error")
def test_features_of_any_order_are_copied():
    fixed = X.copy()
    fixed.flags.writeable = False
    for features in (X, fixed, np.asfortranarray(X), X[::-1], X[:, ::-1], X.astype(int)):
        inputs = as_inputs(nn.Tanh(), features)
        assert inputs.tolist() == features.tolist()
        inputs += 1
        assert X[0, 0] == 0.0


def test_the_device_is_that_of_the_module():
    assert as_inputs(nn.Linear(2, 1, device="meta"), X).device.type == "meta"


@pytest.mark.parametrize(
    ("shape", "n", "rows"),
    [((), 1, (1,)), ((3,), 1, (1, 3)), ((1,), 1, (1,)), ((1, 3), 1, (1, 3)), ((3,), 3, (3,))],
)
def test_a_single_record_has_a_row(shape, n, rows):
    assert with_rows(torch.zeros(shape), n).shape == rows
