from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks import AttackNetwork
from leakscope.networks.inference import PARTS

SIZES = {"predicted": 4, "truth": 4, "probabilities": 4, "explanation": 9}


def seen(names: Any, n: int = 6) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(n, SIZES[name], generator=generator) for name in names}


def test_the_layers_of_figure_11() -> None:
    module = AttackNetwork(SIZES)
    shapes = {
        name: [
            tuple(one.weight.shape[::-1]) for one in part.modules() if isinstance(one, nn.Linear)
        ]
        for name, part in [*module.parts.items(), ("joined", module.joined)]
    }
    assert shapes == {
        "predicted": [(4, 512), (512, 64)],
        "truth": [(4, 512), (512, 64)],
        "probabilities": [(4, 1024), (1024, 512), (512, 64)],
        "explanation": [(9, 1024), (1024, 512), (512, 64)],
        "joined": [(256, 64), (64, 1)],
    }


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_access_gives_one_logit_per_record(number: int) -> None:
    for names in itertools.combinations(PARTS, number):
        module = AttackNetwork({name: SIZES[name] for name in names})
        assert module(seen(names)).shape == (6,)


def test_the_logit_is_that_of_a_forward_by_hand() -> None:
    torch.manual_seed(0)
    module = AttackNetwork({"truth": 4, "explanation": 9})
    nn.init.normal_(module.joined.linear1.bias)  # type: ignore[arg-type]
    given = seen(["truth", "explanation"])
    state = {name: value.numpy().astype(float) for name, value in module.state_dict().items()}
    joined = []
    for name, depth in (("truth", 2), ("explanation", 3)):
        hidden = given[name].numpy().astype(float)
        for place in range(1, depth + 1):
            own = f"parts.{name}.linear{place}"
            hidden = np.maximum(hidden @ state[f"{own}.weight"].T + state[f"{own}.bias"], 0)
        joined.append(hidden)
    hidden = np.hstack(joined) @ state["joined.linear1.weight"].T + state["joined.linear1.bias"]
    logit = np.maximum(hidden, 0) @ state["joined.linear2.weight"].T + state["joined.linear2.bias"]
    np.testing.assert_allclose(module(given).detach().numpy(), logit[:, 0], rtol=1e-4)


def test_the_order_of_the_parts_does_not_matter() -> None:
    made = []
    for order in (list(SIZES), list(reversed(SIZES))):
        torch.manual_seed(3)
        made.append(AttackNetwork({name: SIZES[name] for name in order}))
    given = seen(SIZES)
    backwards = dict(reversed(given.items()))
    assert torch.equal(made[0](given), made[1](backwards))


def test_the_starting_weights() -> None:
    torch.manual_seed(0)
    module = AttackNetwork({"explanation": 500})
    weight = module.parts["explanation"][0].weight.detach()  # type: ignore[index]
    assert float(weight.std()) == pytest.approx(0.01, rel=0.02)
    assert not module.joined.linear2.bias.detach().any()  # type: ignore[union-attr, operator]


def test_what_it_was_not_built_for_is_refused() -> None:
    with pytest.raises(InputError, match="The attack network sees nothing; give some of predicted"):
        AttackNetwork({})
    with pytest.raises(InputError, match="The option inputs cannot be 'label'; choose from: pred"):
        AttackNetwork({"label": 3})
    with pytest.raises(InputError, match="inputs of 'truth' must be a whole number of at least 1"):
        AttackNetwork({"truth": 0})
    module = AttackNetwork({"truth": 4})
    with pytest.raises(InputError, match="was given truth, explanation; give exactly truth"):
        module(seen(["truth", "explanation"]))
    with pytest.raises(InputError, match="was given nothing; give exactly truth"):
        module({})
