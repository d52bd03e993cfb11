"""Which training records a torch module's predictions rest on: influence functions, by captum.

To first order (Koh & Liang 2017, section 2.1) the loss of a prediction rises by gᵀH⁻¹gⱼ without
record j: gⱼ is the gradient of that record's training loss by the parameters, H the curvature of
the sum over all records with the penalty, and g the gradient of the loss of the prediction. Captum
makes a vector of each record so that an influence is the product of two. Away from an optimum, and
for anything but a small network, this is an approximation of what leaving the record out would do,
and often a poor one (Basu et al. 2021); ``exact.leave_one_out`` is exact where it applies.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from leakscope.errors import InputError, MissingExtraError
from leakscope.options import magnitude, one_of, whole_number
from leakscope.protocols import Floats, Indices, Labels, Task

Curvature = Literal["hessian", "arnoldi"]
Measure = Literal["probability", "log-loss", "squared-error"]

_BATCH = 256
# Directions flatter than this are left out of the inverse, as those of redundant parameters are.
_FLAT = 1e-8


@dataclass(frozen=True, eq=False)
class ModuleInfluence:
    """The influence of each of n training records on the predictions of a torch module.

    X (n, …), y (n,): the records it was trained on. classes (C,), None for a regression.
    ``records`` (n, r): the vector of each record, whose product with that of a query is the rise
    of the query's loss without the record, or of the number predicted in a regression.
    """

    X: Floats = field(repr=False)
    y: Labels = field(repr=False)
    classes: Labels | None
    measure: Measure
    records: Floats = field(repr=False)
    _captum: Any = field(repr=False)

    def predict(self, X: Floats) -> Floats:
        """The probability of class 1, (q,), or of every class, (q, C); the number predicted."""
        logits = self._logits(X)
        if self.classes is None:
            return logits[:, 0].numpy()
        shares = functional.softmax(logits, dim=1).numpy()
        return shares[:, 1] if len(self.classes) == 2 else shares

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """The positions of the k records of largest influence in size, and their influence."""
        whole_number("k", k, 1, len(self.X))
        shown = [np.empty((0, k), dtype=np.intp)]
        values = [np.empty((0, k))]
        for _, influence in self.influence_chunks(X):
            order = np.argsort(-np.abs(influence), axis=1, kind="stable")[:, :k]
            shown.append(order)
            values.append(np.take_along_axis(influence, order, axis=1))
        return np.concatenate(shown), np.concatenate(values)

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The influence of every record, in parts: which queries, and their influences (r, n)."""
        for first in range(0, len(X), _BATCH):
            rows = slice(first, min(first + _BATCH, len(X)))
            logits = self._logits(X[rows])
            labels = logits[:, 0] if self.classes is None else logits.argmax(dim=1).double()
            asked = (_tensor(X[rows]), torch.stack([labels, torch.zeros_like(labels)], dim=1))
            vectors = self._captum.compute_intermediate_quantities(asked, test=True)
            found = vectors.detach().numpy() @ self.records.T
            # The squared error against what is predicted has no slope: it is the square of how
            # much the prediction moves.
            yield rows, found if self.classes is not None else found**2

    def _logits(self, X: Floats) -> Tensor:
        with torch.no_grad():
            output: Tensor = self._captum.model(_tensor(X))
        return output[:, :-1]


def module_influence(
    module: nn.Module,
    X: ArrayLike,
    y: ArrayLike,
    *,
    l2: float = 0.0,
    task: Task = "classification",
    measure: Measure | None = None,
    curvature: Curvature = "hessian",
    damping: float = 0.0,
    rank: int = 50,
    seed: int = 0,
) -> ModuleInfluence:
    """The influence of the records X (n, …) with labels y (n,) that a module was trained on.

    The module gives logits, in the order of the sorted labels, or one number. The training loss is
    the sum of log-losses, or of ½ squared errors, plus ½ · l2 times the squared weights, biases
    being free: what ``exact.leave_one_out`` has. measure: the loss of a prediction, of the label
    that is predicted: "probability", 1 − P, or "log-loss"; "squared-error" for a regression.
    curvature: "hessian" inverts that of all p parameters, p² numbers; "arnoldi" keeps its ``rank``
    largest directions (Schioppa et al. 2022) and needs p numbers for each. damping is added to
    the curvature, which a network that is not at an optimum needs.
    """
    one_of("curvature", curvature, get_args(Curvature))
    magnitude("l2", l2)
    magnitude("damping", damping)
    chosen = _measure(task, measure)
    features = np.asarray(X, dtype=np.float64)
    labels = np.asarray(y)
    classes = np.unique(labels) if task == "classification" else None
    numbers = labels.astype(np.float64) if classes is None else np.searchsorted(classes, labels)
    if labels.shape != (len(features),):
        raise InputError(
            f"There must be one label for each of {len(features)} records, got an array of shape "
            f"{labels.shape}"
        )
    inner = _Penalized(copy.deepcopy(module).double().cpu().eval(), l2, pair=classes is not None)
    _check_outputs(inner, features, classes)
    options: Any = {"curvature": curvature, "damping": damping, "rank": rank, "seed": seed}
    engine = _engine(inner, features, numbers, chosen, **options)
    records = engine.compute_intermediate_quantities(_loader(features, numbers, 0.0))
    return ModuleInfluence(
        features, labels, classes, chosen, records.detach().numpy().astype(np.float64), engine
    )


class _Penalized(nn.Module):
    """A module whose last output is its penalty, so that captum's losses can see it.

    pair: a single logit stands for two classes, and becomes two.
    """

    def __init__(self, module: nn.Module, l2: float, pair: bool) -> None:
        super().__init__()
        self.module, self.l2, self.pair = module, l2, pair

    def forward(self, X: Tensor) -> Tensor:
        output = self.module(X).reshape(len(X), -1)
        if self.pair and output.shape[1] == 1:
            output = torch.cat([-output / 2, output / 2], dim=1)
        weights = [one for one in self.module.parameters() if one.ndim > 1]
        penalty = sum((one.square().sum() for one in weights), torch.zeros((), dtype=X.dtype))
        return torch.cat([output, (self.l2 / 2 * penalty).expand(len(X), 1)], dim=1)


def _engine(
    inner: _Penalized,
    X: Floats,
    numbers: Floats | Indices,
    measure: Measure,
    *,
    curvature: Curvature,
    damping: float,
    rank: int,
    seed: int,
) -> Any:
    """Captum's influence function, with the curvature of all records and of the penalty."""
    try:
        from captum.influence._core.arnoldi_influence_function import ArnoldiInfluenceFunction
        from captum.influence._core.influence_function import NaiveInfluenceFunction
    except ModuleNotFoundError as error:
        raise MissingExtraError("The influence of records on a torch module", "torch") from error

    size = sum(one.numel() for one in inner.parameters())
    options: dict[str, Any] = {"projection_dim": size}
    kind: Any = NaiveInfluenceFunction
    if curvature == "arnoldi":
        kind = ArnoldiInfluenceFunction
        kept = min(whole_number("rank", rank, 1), size)
        options = {"projection_dim": kept, "arnoldi_dim": min(4 * kept, size), "arnoldi_tol": 1e-9}
    with warnings.catch_warnings():
        # Captum copies tensors in a way that torch advises against.
        warnings.filterwarnings("ignore", "To copy construct from a tensor", UserWarning)
        return kind(
            inner,
            _loader(X, numbers, 0.0),
            checkpoint="",
            checkpoints_load_func=lambda *_: 1.0,
            loss_fn=_PerRecord(_half_squared_error if measure == "squared-error" else _log_loss),
            test_loss_fn=_PerRecord(_LOSSES[measure]),
            # A penalty of one over n beside each of n records is one penalty in the sum.
            hessian_dataset=_loader(X, numbers, 1.0 / len(X)),
            hessian_reg=damping,
            hessian_inverse_tol=_FLAT,
            seed=seed,
            **options,
        )


def _loader(X: Floats, numbers: Floats | Indices, share: float) -> DataLoader[Any]:
    """Records in batches, each label beside the share of the penalty that counts with it."""
    labels = torch.as_tensor(np.column_stack([numbers, np.full(len(X), share)]))
    return DataLoader(TensorDataset(_tensor(X), labels.double()), batch_size=_BATCH)


def _log_loss(output: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(output[:, :-1], labels[:, 0].long(), reduction="none")


def _complement(output: Tensor, labels: Tensor) -> Tensor:
    shares = functional.softmax(output[:, :-1], dim=1)
    return 1 - shares.gather(1, labels[:, :1].long())[:, 0]


def _prediction(output: Tensor, labels: Tensor) -> Tensor:
    return output[:, 0]


def _half_squared_error(output: Tensor, labels: Tensor) -> Tensor:
    return (output[:, 0] - labels[:, 0]).square() / 2


_LOSSES: dict[Measure, Callable[[Tensor, Tensor], Tensor]] = {
    "probability": _complement,
    "log-loss": _log_loss,
    "squared-error": _prediction,
}


@dataclass(frozen=True)
class _PerRecord:
    """A loss with the penalty, in the form in which captum takes one: a number per record."""

    of: Callable[[Tensor, Tensor], Tensor]
    reduction: str = "none"

    def __call__(self, output: Tensor, labels: Tensor) -> Tensor:
        return self.of(output, labels) + labels[:, 1] * output[:, -1]


def _measure(task: Task, measure: Measure | None) -> Measure:
    if task == "regression":
        one_of("measure", measure or "squared-error", ["squared-error"])
        return "squared-error"
    one_of("measure", measure or "probability", ["probability", "log-loss"])
    return measure or "probability"


def _check_outputs(inner: _Penalized, X: Floats, classes: Labels | None) -> None:
    with torch.no_grad():
        outputs = inner(_tensor(X[:1])).shape[1] - 1
    wanted = 1 if classes is None else len(classes)
    if outputs != wanted:
        raise InputError(
            f"The module has {outputs} outputs where the labels make {wanted} necessary; give the "
            "records it was trained on"
        )


def _tensor(X: Floats) -> Tensor:
    return torch.as_tensor(np.asarray(X, dtype=np.float64))
