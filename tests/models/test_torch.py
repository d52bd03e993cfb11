"""Torch modules as they come: whatever they end in, and whatever mode they are in."""

from __future__ import annotations

import copy
import hashlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, softmax
from torch import Tensor, nn
from torch.nn import functional

from leakscope.errors import InputError, ModelError
from leakscope.models import Remembering, as_model
from leakscope.models.aligned import aligned
from leakscope.models.torch import TorchModel
from leakscope.networks import MLP, network
from leakscope.protocols import AdjustableModel, Model
from leakscope.trials.packing import pack, unpack

X = np.random.default_rng(0).normal(size=(10, 4))
Y = np.arange(10) % 3


def mlp(outputs: int = 3, dropout: float = 0.0) -> MLP:
    torch.manual_seed(0)
    return MLP([4, 8, outputs], dropout=dropout)


def mlp_of(inputs: int) -> MLP:
    torch.manual_seed(0)
    return MLP([inputs, 3])


def logits_of(module: nn.Module) -> Any:
    with torch.no_grad():
        return copy.deepcopy(module).eval()(torch.tensor(X, dtype=torch.float32)).double().numpy()


def packed(model: Model) -> bytes:
    parts = pack(model)
    assert parts is not None
    return b"".join(parts)


# --- answers --------------------------------------------------------------------------------------


def test_a_module_of_logits() -> None:
    module = mlp()
    model = as_model(module)
    assert isinstance(model, TorchModel)
    assert isinstance(model, AdjustableModel)
    assert (model.name, model.task, model.classes) == ("MLP", "classification", None)
    assert model.abilities == {
        "labels",
        "probabilities",
        "loss",
        "queries",
        "parameters",
        "gradients",
    }
    expected = softmax(logits_of(module), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    assert model.classes is not None
    assert model.classes.tolist() == [0, 1, 2]
    assert model.predict(X).tolist() == expected.argmax(axis=1).tolist()
    np.testing.assert_allclose(model.loss(X, Y), -np.log(expected[np.arange(10), Y]))


def test_classes_have_the_labels_they_are_given() -> None:
    classes = np.array(["a", "b", "c"])
    model = as_model(mlp(), classes=classes)
    best = as_model(mlp()).predict(X)
    assert model.predict(X).tolist() == classes[best].tolist()
    np.testing.assert_array_equal(model.loss(X, classes[Y]), as_model(mlp()).loss(X, Y))


@pytest.mark.parametrize(
    "ending", [nn.Softmax(1), nn.LogSoftmax(1), nn.Sequential(nn.Identity(), nn.Softmax(-1))]
)
def test_a_softmax_is_not_applied_twice(ending: nn.Module) -> None:
    module = mlp()
    expected = softmax(logits_of(module), axis=1)
    for frozen in (False, True):
        ended = nn.Sequential(module, ending).requires_grad_(not frozen)
        np.testing.assert_allclose(as_model(ended).predict_proba(X), expected, rtol=1e-5)


@pytest.mark.parametrize("ending", [nn.Identity(), nn.Sigmoid(), nn.LogSigmoid(), nn.Flatten(0)])
def test_one_output_is_of_the_second_of_two_classes(ending: nn.Module) -> None:
    module = mlp(1)
    expected = expit(logits_of(module)[:, 0])
    model = as_model(nn.Sequential(module, ending), classes=np.array(["no", "yes"]))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=1e-5)
    assert model.predict(X).tolist() == np.where(expected > 0.5, "yes", "no").tolist()


def test_a_module_of_numbers() -> None:
    module = mlp(1)
    model = as_model(module, task="regression")
    assert (model.task, model.classes) == ("regression", None)
    assert model.abilities == {"labels", "loss", "queries", "parameters", "gradients"}
    np.testing.assert_allclose(model.predict(X), logits_of(module)[:, 0])
    np.testing.assert_allclose(model.loss(X, Y), (logits_of(module)[:, 0] - Y) ** 2)
    with pytest.raises(ModelError, match="MLP predicts numbers; it has no probabilities"):
        model.predict_proba(X)
    with pytest.raises(ModelError, match="MLP has 3 outputs per record; audit one output"):
        as_model(mlp(), task="regression").predict(X)


class Hidden(nn.Module):
    """One output, of which no gradients are kept."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0].sigmoid()


def test_what_the_outputs_are_can_be_said() -> None:
    p = expit(X[:, 0].astype(np.float32))
    with pytest.raises(ModelError, match="Hidden keeps no gradients, and its one output per rec"):
        as_model(Hidden()).predict(X)
    given = TorchModel(Hidden(), outputs="probabilities").predict_proba(X)[:, 1]
    np.testing.assert_allclose(given, p, rtol=1e-6)
    np.testing.assert_allclose(
        TorchModel(Hidden(), outputs="logits").predict_proba(X)[:, 1], expit(p), rtol=1e-6
    )
    wrong: Any = "logit"
    with pytest.raises(InputError, match="option outputs cannot be 'logit'; did you mean 'logits'"):
        TorchModel(Hidden(), outputs=wrong)
    assert "parameters" not in as_model(Hidden()).abilities
    with pytest.raises(ModelError, match="Hidden has no parameters"):
        TorchModel(Hidden()).parameters()


# --- inputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 3, 10, 1000])
def test_batches_change_nothing(batch_size: int) -> None:
    asked = []
    module = mlp()
    model = TorchModel(module, batch_size=batch_size)
    expected = as_model(mlp()).predict_proba(X)
    model.predict_proba(X)  # the first time a few records are tried besides
    module.register_forward_hook(lambda _, given, out: asked.append(len(out)))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5)
    assert max(asked) <= batch_size
    assert sum(asked) == 10


def test_no_records_have_no_answers() -> None:
    assert as_model(mlp()).predict_proba(X[:0]).shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_features_take_the_type_of_the_module(dtype: torch.dtype) -> None:
    seen = []
    module = mlp().to(dtype)
    module.register_forward_pre_hook(lambda _, given: seen.append(given[0].dtype))
    whole = (X * 10).round().clip(0, 255)
    answers = [as_model(module).predict_proba(whole.astype(kind)) for kind in ("f8", "f4", "u1")]
    answers.append(as_model(module).predict_proba(pd.DataFrame(whole).astype("Int64")))
    answers.append(as_model(module).predict_proba(whole.tolist()))
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])
    assert set(seen) == {dtype}


def test_a_table_must_hold_numbers() -> None:
    frame = pd.DataFrame(X).assign(city="Oslo")
    with pytest.raises(ModelError, match="column 'city' is not numeric, row 0 holds 'Oslo'; encod"):
        as_model(mlp()).predict(frame)


def test_images_are_asked_about_as_they_are() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 1, 28, 28), dtype=np.uint8)
    assert as_model(network("lenet5", (1, 28, 28), 10)).predict_proba(images).shape == (3, 10)


def test_features_that_cannot_be_written_to_stay_as_they_are() -> None:
    locked = X.astype(np.float32)
    before = locked.copy()
    module = nn.Sequential(nn.ReLU(inplace=True), mlp())
    expected = as_model(module).predict_proba(locked)
    np.testing.assert_array_equal(locked, before)
    locked.flags.writeable = False
    np.testing.assert_array_equal(as_model(module).predict_proba(locked), expected)


def test_the_device_is_kept() -> None:
    module = mlp()
    model = TorchModel(module)
    assert model.tensor(X).device == torch.device("cpu")
    model.predict(X)
    assert {part.device.type for part in module.parameters()} == {"cpu"}
    assert TorchModel(mlp().to("meta")).tensor(X).device.type == "meta"
    assert TorchModel(nn.Identity()).tensor(X).dtype == torch.float32
    assert torch.equal(model.tensor(pd.DataFrame(X)), model.tensor(X))


# --- modes ----------------------------------------------------------------------------------------


def test_answers_are_those_of_evaluation_and_the_mode_is_restored() -> None:
    module = nn.Sequential(nn.BatchNorm1d(4), mlp(dropout=0.5)).train()
    module[0].eval()
    averages = copy.deepcopy(module.state_dict())
    model = as_model(module)
    np.testing.assert_allclose(model.predict_proba(X), softmax(logits_of(module), axis=1))
    assert module.training
    assert [layer.training for layer in module.children()] == [False, True]
    assert all(torch.equal(averages[name], now) for name, now in module.state_dict().items())
    with pytest.raises(ModelError, match="could not answer"):
        model.predict_proba(X[:, :2])
    assert module.training
    assert all(part.grad is None for part in module.parameters())


def test_gradients_stay_switched_on() -> None:
    as_model(mlp()).predict(X)
    assert torch.is_grad_enabled()


class Restless(nn.Module):
    """Dropout that does not care about modes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 64), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Any:
        return self.second(functional.dropout(self.first(x), training=True))


def test_a_module_that_answers_at_random_is_refused() -> None:
    torch.manual_seed(0)
    sentence = (
        "Restless gives two answers for the same records in evaluation mode, first at the input of "
        r"the layer 'second' \(Linear\); let its dropout or noise follow module.eval\(\)"
    )
    for task in ("classification", "regression"):
        with pytest.raises(ModelError, match=sentence):
            TorchModel(Restless(), task=task).predict(X)


def test_a_module_whose_answer_depends_on_the_others_is_refused() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, track_running_stats=False), mlp_of(8))
    sentence = (
        "Sequential answers otherwise for the same record if it is asked about others besides, "
        r"first at the layer '1' \(BatchNorm1d\); let each record have an answer of its own"
    )
    with pytest.raises(ModelError, match=sentence):
        TorchModel(module).predict_proba(X)


def test_features_may_be_read_backwards() -> None:
    model = TorchModel(mlp())
    np.testing.assert_array_equal(model.predict_proba(X[::-1]), model.predict_proba(X)[::-1])


def test_what_the_outputs_are_is_told_after_they_have_been_checked() -> None:
    assert TorchModel(mlp()).kind(X) == "logits"
    assert TorchModel(nn.Sequential(mlp(), nn.Softmax(1))).kind(X) == "probabilities"
    assert TorchModel(mlp(), outputs="log-probabilities").kind(X[:0]) == "log-probabilities"
    assert TorchModel(mlp(1), task="regression").kind(X) == "logits"
    assert TorchModel(exploding()).kind(X) == "logits"
    labels = TorchModel(nn.Sequential(mlp(), nn.Sigmoid()))
    for _ in range(2):
        with pytest.raises(ModelError, match="not probabilities summing to 1"):
            labels.kind(X)


# --- what goes wrong is one sentence --------------------------------------------------------------


class Telling(nn.Module):
    """A module that answers whatever it was made with."""

    def __init__(self, answer: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: Tensor) -> Any:
        return self.answer(x)


def exploding() -> nn.Module:
    module = mlp()
    with torch.no_grad():
        module.linears[1].weight[0, 0] = torch.nan
    return module


REFUSALS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "other features": (
        lambda: nn.Sequential(mlp(), nn.Linear(2, 3)),
        r"Sequential could not answer for these records, in the layer '1' \(Linear\), which was "
        r"given \(4, 3\): mat1 and mat2 shapes",
    ),
    "fails by itself": (
        lambda: Telling(lambda x: x["age"]),  # type: ignore[index]
        "Telling could not answer for these records: ",
    ),
    "in TorchScript": (
        lambda: torch.jit.trace(nn.Linear(3, 3), torch.zeros(2, 3)),
        "could not answer for these records: mat1 and mat2 shapes cannot be multiplied",
    ),
    "nan": (
        exploding,
        "MLP gives NaN or infinite numbers for 10 of 10 records, the first of them record 0 "
        r"\(counting from 0\), first at the layer 'layers.linear2' \(Linear\); scale",
    ),
    "infinite for some": (
        lambda: Telling(lambda x: torch.where(x == x.max(), torch.inf, x)),
        r"Telling gives NaN or infinite numbers for \d of 10 records, the first of them record \d "
        r"\(counting from 0\), first at the output of the module itself",
    ),
    "several tensors": (
        lambda: Telling(lambda x: (x, x)),
        "Telling answered with a tuple; wrap it in a module that gives one tensor",
    ),
    "one answer for all": (
        lambda: Telling(lambda x: x.sum()),
        r"Telling answered with shape \(\) for 4 records; one row per record is needed",
    ),
    "other rows": (
        lambda: Telling(lambda x: x[:3]),
        r"Telling answered with shape \(3, 4\) for 4 records; one row per record is needed",
    ),
    "images": (
        lambda: Telling(lambda x: x.reshape(-1, 2, 2).softmax(1)),
        r"Telling answered with shape \(10, 2, 2\) for 10 records; one row of class probabilities",
    ),
    "several labels": (
        lambda: nn.Sequential(mlp(), nn.Sigmoid()),
        "which are not probabilities summing to 1; apply a softmax",
    ),
}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("case", REFUSALS)
def test_what_goes_wrong_is_one_sentence(case: str) -> None:
    make, sentence = REFUSALS[case]
    with pytest.raises(ModelError, match=sentence) as caught:
        as_model(make()).predict(X)
    assert "\n" not in str(caught.value)


def test_nan_in_a_regression_names_the_layer_too() -> None:
    module = nn.Sequential(mlp(1), Telling(torch.log))
    with pytest.raises(ModelError, match=r"first at the layer '1' \(Telling\)"):
        as_model(module, task="regression").predict(X)


def test_missing_features_are_not_the_fault_of_a_layer() -> None:
    gaps = X.copy()
    gaps[7, 2] = np.nan
    with pytest.raises(ModelError, match="MLP cannot answer for record 7 of the 10 asked about"):
        as_model(mlp()).predict(gaps)


def test_another_number_of_outputs_names_the_last_layer() -> None:
    model = as_model(mlp(), classes=np.arange(5))
    sentence = (
        r"MLP gives 3 outputs per record, from the layer 'layers.linear2' \(Linear\), where there "
        "are 5 classes; pass classes= in the order of its outputs"
    )
    with pytest.raises(ModelError, match=sentence):
        model.predict(X)
    with pytest.raises(ModelError, match=r"gives 1 output per record, .* there are 3 classes"):
        as_model(mlp(1), classes=np.arange(3)).predict(X)


def test_a_single_record_may_lose_its_row() -> None:
    for outputs in (1, 3):
        module = mlp(outputs)
        squeezed = nn.Sequential(module, Telling(torch.squeeze))
        model = TorchModel(squeezed, batch_size=9)
        np.testing.assert_allclose(
            model.predict_proba(X), as_model(module).predict_proba(X), rtol=1e-6
        )
        assert as_model(squeezed).predict_proba(X[:1]).shape == (1, max(outputs, 2))


def test_a_class_that_is_ruled_out_has_probability_0() -> None:
    masking = Telling(
        lambda x: x.masked_fill(torch.tensor([False, True, False, False]), -torch.inf)
    )
    answer = as_model(masking).predict_proba(X)
    np.testing.assert_array_equal(answer[:, 1], 0)
    np.testing.assert_allclose(answer[:, [0, 2, 3]], softmax(X[:, [0, 2, 3]], axis=1), rtol=1e-5)


# --- parameters -----------------------------------------------------------------------------------


def test_the_parameters_are_a_vector_in_the_order_of_the_module() -> None:
    module = mlp()
    vector = TorchModel(module).parameters()
    assert vector.dtype == np.float64
    assert vector.shape == (4 * 8 + 8 + 8 * 3 + 3,)
    expected = [part.detach().numpy().ravel() for part in module.parameters()]
    np.testing.assert_array_equal(vector, np.concatenate(expected))


def test_other_parameters_give_another_model_and_leave_this_one() -> None:
    model = TorchModel(mlp(), classes=np.array(["a", "b", "c"]), batch_size=7)
    before = model.parameters()
    changed = before * 2
    changed.flags.writeable = False
    other = model.with_parameters(changed)
    np.testing.assert_array_equal(other.parameters(), changed)
    np.testing.assert_array_equal(model.parameters(), before)
    assert (other.batch_size, other.classes is not None) == (7, True)
    assert not np.array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(
        model.with_parameters(before).predict_proba(X), model.predict_proba(X)
    )
    with pytest.raises(ModelError, match=r"of shape \(66,\) do not fit MLP, which has 67"):
        model.with_parameters(before[:-1])


def test_tied_weights_are_there_once() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    module[2].weight = module[0].weight
    model = TorchModel(module)
    assert model.parameters().shape == (16 + 4 + 4,)
    other = model.with_parameters(np.arange(24.0)).module
    assert other[2].weight is other[0].weight  # type: ignore[index]


def test_a_model_stands_behind_the_wrappers_of_others() -> None:
    model = TorchModel(mlp(), classes=np.arange(3))
    np.testing.assert_array_equal(Remembering(model).predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(Remembering(model).parameters(), model.parameters())
    wide = aligned(model, np.arange(4))
    np.testing.assert_array_equal(wide.predict_proba(X)[:, :3], model.predict_proba(X))


# --- the store ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mlp", "lenet5"])
def test_a_model_comes_back_as_it_was(name: str) -> None:
    torch.manual_seed(0)
    shape = (1, 28, 28) if name == "lenet5" else (4,)
    features = np.random.default_rng(0).normal(size=(5, *shape))
    model = TorchModel(network(name, shape, 3), classes=np.array(["a", "b", "c"]))
    unasked = packed(model)
    again = unpack(unasked)
    assert isinstance(again, TorchModel)
    np.testing.assert_array_equal(again.predict_proba(features), model.predict_proba(features))
    assert again.name == model.name
    assert packed(again) == packed(model) == unasked  # asking changes nothing
    again.module.train()
    assert model.module.training


def test_weights_are_written_from_where_they_are() -> None:
    module = mlp()
    parts = pack(TorchModel(module))
    assert parts is not None
    weight = module.linears[0].weight.detach().numpy()
    assert any(np.shares_memory(np.frombuffer(part, np.uint8), weight) for part in parts[2:])
    assert sum(len(part) for part in parts[2:]) == 4 * 67


@pytest.mark.slow
def test_the_same_weights_are_the_same_bytes_in_another_process() -> None:
    program = """
import hashlib, numpy as np, torch
from leakscope.models.torch import TorchModel
from leakscope.networks import network
from leakscope.trials.packing import pack
torch.manual_seed(0)
model = TorchModel(network("lenet5", (1, 28, 28), 10), classes=np.arange(10))
print(hashlib.sha256(b"".join(pack(model))).hexdigest())
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    torch.manual_seed(0)
    model = TorchModel(network("lenet5", (1, 28, 28), 10), classes=np.arange(10))
    assert run.stdout.strip() == hashlib.sha256(packed(model)).hexdigest()


def test_a_module_of_a_class_that_cannot_be_found_is_not_written() -> None:
    class Local(nn.Linear):
        pass

    assert pack(TorchModel(Local(4, 3))) is None
    assert pack(TorchModel(Telling(lambda x: x))) is None


def test_copies_have_weights_of_their_own() -> None:
    model = TorchModel(mlp())
    other = copy.deepcopy(model)
    with torch.no_grad():
        for part in other.module.parameters():
            part.zero_()
    assert model.parameters().any()
    assert not other.parameters().any()


# --- what is no module ----------------------------------------------------------------------------


def test_only_modules_are_accepted() -> None:
    assert TorchModel.accepts(mlp())
    for thing in (nn.Linear, torch.zeros(2), X, None, torch.nn.functional.relu):
        assert not TorchModel.accepts(thing)
    with pytest.raises(ModelError, match=r"A torch\.Tensor is a part of torch and no module; pass"):
        as_model(torch.zeros(2))
    with pytest.raises(ModelError, match="Linear is a class; pass an instance of it"):
        as_model(nn.Linear)
