"""Torch modules: logits, probabilities or numbers out, whatever mode and device they are in.

The module is the user's own and is left as it was found: its modes are restored, also after an
error, and its device and type are kept. torch is imported where it is needed, so that models of
other kinds are found without it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd

from leakscope.errors import ModelError
from leakscope.models.answers import (
    checked_numbers,
    checked_probabilities,
    class_numbers,
    squared_error,
)
from leakscope.options import one_of, whole_number
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task
from leakscope.records.checks import as_floats, holds_numbers, shown
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import Tensor, nn

    from leakscope.networks.endings import Kind

Outputs = Literal["auto", "logits", "probabilities", "log-probabilities"]
T = TypeVar("T")

OUTPUTS = ("auto", "logits", "probabilities", "log-probabilities")

# Records on which it is tried whether a module answers twice alike, and how many of them are then
# asked about without the others: two, as some modules cannot take one.
PROBE, FEW = 4, 2


@register("model", "torch")
class TorchModel:
    """A torch module from features (n, …) to logits or probabilities (n, k), or to numbers (n,).

    classes: the label of each output, 0, 1, … by default; one output is the logit, or the
    probability, of the second of two. outputs: what they are; by default that is told from the
    module's last operation. batch_size: how many records it is asked about at once.
    """

    reads_by_position = True

    def __init__(
        self,
        module: nn.Module,
        classes: Labels | None = None,
        task: Task = "classification",
        batch_size: int = 1024,
        outputs: Outputs = "auto",
    ) -> None:
        self.module = module
        self.name = type(module).__name__
        self.task: Task = task
        self.classes: Labels | None = None if classes is None else np.asarray(classes)
        self.batch_size = whole_number("batch_size", batch_size, low=1)
        one_of("outputs", outputs, OUTPUTS)
        self.outputs: Outputs = outputs
        abilities: set[Ability] = {"labels", "loss", "queries", "gradients"}
        if task == "classification":
            abilities.add("probabilities")
        if any(True for _ in module.parameters()):
            abilities.add("parameters")
        self.abilities = frozenset(abilities)
        self._kind: Kind | None = None  # known, where it is "auto", from the first answers on
        self._tried = False
        self._checked = False

    @staticmethod
    def accepts(thing: Any) -> bool:
        """Whether it is a torch module; where torch is not loaded, nothing can be one."""
        loaded = sys.modules.get("torch")
        return loaded is not None and isinstance(thing, loaded.nn.Module)

    @classmethod
    def wrap(
        cls, thing: Any, *, classes: Labels | None = None, task: Task | None = None
    ) -> TorchModel:
        """The module as a Model; without classes, output j stands for the label j."""
        return cls(thing, classes, task or "classification")

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,): the most probable class, or the number."""
        if self.task == "regression":
            return self._numbers(X)
        best = self.predict_proba(X).argmax(axis=1)
        assert self.classes is not None  # predict_proba sets it
        return np.asarray(self.classes[best])

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k)."""
        if self.task == "regression":
            raise ModelError(f"{self.name} predicts numbers; it has no probabilities")
        from leakscope.networks.endings import as_probabilities

        features = _features(X, self.name)
        answers = self._answers(features)
        probabilities = as_probabilities(answers, self._kind)
        self._refuse_not_finite(features, probabilities)
        self._refuse_other_width(features, answers)
        k = None if self.classes is None else len(self.classes)
        checked = checked_probabilities(probabilities, len(features), self.name, k)
        if self.classes is None:
            self.classes = np.arange(checked.shape[1])
        return checked

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,)."""
        if self.task == "regression":
            return squared_error(self._numbers(X), y, self.name)
        probabilities = self.predict_proba(X)
        return log_loss(probabilities, class_numbers(self, y))

    def parameters(self) -> Floats:
        """The parameter vector, (p,), in the module's own order; tied weights are in it once.

        Buffers, such as the averages of batch normalization, are no parameters.
        """
        parts = [part.detach().cpu().double().numpy().ravel() for part in self.module.parameters()]
        if not parts:
            raise ModelError(f"{self.name} has no parameters; use another channel")
        return np.concatenate(parts)

    def with_parameters(self, vector: Floats) -> TorchModel:
        """The same model with these parameters (p,); its buffers stay as they are."""
        import torch

        size = sum(part.numel() for part in self.module.parameters())
        if np.shape(vector) != (size,):
            raise ModelError(
                f"Parameters of shape {np.shape(vector)} do not fit {self.name}, which has {size}; "
                "give one number for each"
            )
        module, values = copy.deepcopy(self.module), torch.tensor(np.asarray(vector))
        with torch.no_grad():
            for part in module.parameters():
                own, values = values[: part.numel()], values[part.numel() :]
                part.copy_(own.reshape(part.shape))
        return TorchModel(module, self.classes, self.task, self.batch_size, self.outputs)

    def tensor(self, X: Any) -> Tensor:
        """Features (n, …) as the module takes them: of its type, and on its device."""
        from leakscope.networks.asking import as_inputs

        return as_inputs(self.module, _features(X, self.name))

    def kind(self, X: Any) -> Kind:
        """What the module's outputs are, after a few of these records have been asked about.

        What is wrong with its answers is said in a sentence, but for those that are not finite,
        which an explanation tells of by the record. Numbers are taken as they are, as logits are.
        """
        few = _features(X, self.name)[:PROBE]
        if not self._checked and np.isfinite(self._answers(few)).all():
            self.predict(few)
            self._checked = True
        return self._kind or "logits"

    def _numbers(self, X: Any) -> Floats:
        features = _features(X, self.name)
        numbers = self._answers(features)
        self._refuse_not_finite(features, numbers)
        return checked_numbers(numbers, len(features), self.name)

    def _answers(self, X: np.ndarray[Any, Any]) -> Floats:
        """What the module answers in evaluation mode, (n, …)."""
        import torch

        from leakscope.networks.tracing import evaluating

        starts = range(0, max(len(X), 1), self.batch_size)
        batches = (X[start : start + self.batch_size] for start in starts)
        with evaluating(self.module), torch.no_grad():
            if not self._tried:
                self._try(X[:PROBE])
            return np.concatenate([self._ask(batch).double().cpu().numpy() for batch in batches])

    def _ask(self, X: np.ndarray[Any, Any], graph: bool = False) -> Tensor:
        """The module's answer for one batch, or a sentence that names the layer that failed."""
        import torch

        from leakscope.networks.asking import with_rows
        from leakscope.networks.endings import with_gradients
        from leakscope.networks.tracing import failing_step, failure, reason

        try:
            with torch.set_grad_enabled(graph):
                inputs = self.tensor(X)
                answer = self.module(with_gradients(inputs) if graph else inputs)
        except Exception as error:
            step = failing_step(self.module, partial(self._run, X))
            raise ModelError(
                f"{self.name} could not answer for these records{failure(step)}: {reason(error)}"
            ) from error
        if not isinstance(answer, torch.Tensor):
            raise ModelError(
                f"{self.name} answered with a {type(answer).__name__}; wrap it in a module that "
                "gives one tensor"
            )
        n = len(X)
        with torch.set_grad_enabled(graph):
            answer = with_rows(answer, n)
        if answer.ndim == 0 or len(answer) != n:
            raise ModelError(
                f"{self.name} answered with shape {tuple(answer.shape)} for {n} records; one row "
                "per record is needed"
            )
        return answer

    def _try(self, X: np.ndarray[Any, Any]) -> None:
        """Ask twice about a few records: answers that differ are refused; tell what they are."""
        from leakscope.networks.endings import kind_of_outputs
        from leakscope.networks.tracing import alike, beginning, first_difference, first_mixing

        answer = self._ask(X, graph=True)
        if not alike(answer.detach().double(), self._ask(X).double()):
            step = first_difference(self.module, partial(self._run, X))
            raise ModelError(
                f"{self.name} gives two answers for the same records in evaluation mode"
                f"{beginning(step)}; let its dropout or noise follow module.eval(), as nn.Dropout "
                "does and F.dropout(x, training=True) does not"
            )
        few = X[:FEW]
        if not alike(answer[:FEW].detach().double(), self._ask(few).double()):
            step = first_mixing(self.module, partial(self._run, X), partial(self._run, few))
            raise ModelError(
                f"{self.name} answers otherwise for the same record if it is asked about others "
                f"besides{beginning(step)}; let each record have an answer of its own, as with "
                "nn.BatchNorm1d(…, track_running_stats=True)"
            )
        if self.task == "classification":
            self._kind = kind_of_outputs(answer) if self.outputs == "auto" else self.outputs
            if self._kind is None:
                raise ModelError(
                    f"{self.name} keeps no gradients, and its one output per record may be a logit "
                    "or a probability; pass TorchModel(module, outputs='logits'), or "
                    "outputs='probabilities'"
                )
        self._tried = True

    def _refuse_not_finite(self, X: np.ndarray[Any, Any], answers: Floats) -> None:
        """Name the first layer at which an answer is lost to NaN or infinity."""
        bad = np.flatnonzero(~np.isfinite(answers).all(axis=tuple(range(1, answers.ndim))))
        if not len(bad):
            return
        row = int(bad[0])
        if X.dtype.kind == "f" and not np.isfinite(X[row]).all():
            raise ModelError(
                f"{self.name} cannot answer for record {row} of the {len(X)} asked about (counting "
                "from 0), of which features are missing (nan) or infinite; fill them in"
            )
        from leakscope.networks.tracing import beginning, first_not_finite

        step = self._watched(first_not_finite, X[row : row + 1])
        raise ModelError(
            f"{self.name} gives NaN or infinite numbers for {len(bad)} of {len(X)} records, the "
            f"first of them record {row} (counting from 0){beginning(step)}; scale the features, "
            "or train it at a lower rate"
        )

    def _refuse_other_width(self, X: np.ndarray[Any, Any], answers: Floats) -> None:
        """Name the last layer where it has another number of outputs than there are classes."""
        width = answers.shape[1] if answers.ndim == 2 else 1
        if self.classes is None or answers.ndim > 2 or max(width, 2) == len(self.classes):
            return
        from leakscope.networks.tracing import last_layer

        raise ModelError(
            f"{self.name} gives {width} output{'s'[: width - 1]} per record, from "
            f"{self._watched(last_layer, X[:1])}, where there are {len(self.classes)} classes; "
            "pass classes= in the order of its outputs"
        )

    def _watched(self, watch: Callable[..., T], X: np.ndarray[Any, Any]) -> T:
        """What a watcher of layers finds while the module answers for these records."""
        import torch

        from leakscope.networks.tracing import evaluating

        with evaluating(self.module), torch.no_grad():
            return watch(self.module, partial(self._run, X))

    def _run(self, X: np.ndarray[Any, Any]) -> Any:
        return self.module(self.tensor(X))

    def __getstate__(self) -> dict[str, Any]:
        from leakscope.networks.holding import take_apart

        structure, arrays = take_apart(self.module)
        unknown = {"_kind": None, "_tried": False, "_checked": False}
        return vars(self) | {"module": structure, "arrays": arrays} | unknown

    def __setstate__(self, state: dict[str, Any]) -> None:
        from leakscope.networks.holding import put_together

        arrays = state.pop("arrays")
        vars(self).update(state, module=put_together(state["module"], arrays))


def _features(X: Any, name: str) -> np.ndarray[Any, Any]:
    """A table of numbers as an array, (n, d); an array as it is, (n, …)."""
    if not isinstance(X, pd.DataFrame):
        return np.asarray(X)
    for column in X.columns:
        if not holds_numbers(X[column]):
            raise ModelError(
                f"{name} could not answer for these records: column {shown(column)} is not "
                f"numeric, row 0 holds {shown(X[column].iloc[0])}; encode it for a torch module"
            )
    return np.column_stack([as_floats(X[column]) for column in X.columns])
