"""Training of several plain networks at once: each as training.train would train it alone.

Each has its own records, weights, order and dropout. They differ from those that are trained alone
by rounding only: the same sums are added in another order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakscope.networks.losses import accurate, stacked_loss
from leakscope.networks.stacking import Layer, Masks, Stack
from leakscope.networks.training import (
    LOOKED_AT,
    Figures,
    History,
    Training,
    bounds,
    check_stopping,
    not_finite,
)


@dataclass(frozen=True)
class Member:
    """One network of a stack: its module, and which records it is trained and validated on.

    records, validation: positions in the common X, (n,); order: where the order of the records is
    drawn from; dropout: where dropout draws from.
    """

    module: nn.Module
    records: Tensor
    order: torch.Generator
    dropout: torch.Generator
    validation: Tensor | None = None


@dataclass(frozen=True)
class Batch:
    """The batch of this number in every epoch, for the first networks: others have fewer.

    columns: which part of the networks' orders it is; sizes: how many records each network has in
    it, (a,); shares (a, b): 1 / size for its records, 0 for the rest; groups: how many groups of
    networks take part.
    """

    columns: slice
    sizes: Sequence[int]
    shares: Tensor
    groups: int


def train_together(
    members: Sequence[Member], layers: Sequence[Layer], X: Tensor, y: Tensor, settings: Training
) -> list[History]:
    """Train the modules of m networks of these layers in place; they end in evaluation mode.

    X (n, d) and y (n,): the records of all of them. settings.loss is one with a name.
    """
    for one in members:
        check_stopping(settings, y, one.validation is not None)
    # Those with most batches first: the ones that still have a batch are always the first ones.
    places = sorted(range(len(members)), key=lambda i: -len(members[i].records))
    run = _Run([members[place] for place in places], layers, X, y, settings)
    histories = run.through()
    return [history for _, history in sorted(zip(places, histories, strict=True), key=_place)]


def _place(pair: tuple[int, History]) -> int:
    return pair[0]


class _Run:
    """One training of a stack; the members are sorted by their number of records, most first."""

    def __init__(
        self,
        members: Sequence[Member],
        layers: Sequence[Layer],
        X: Tensor,
        y: Tensor,
        settings: Training,
    ) -> None:
        self.members, self.settings, self.X, self.y = members, settings, X, y
        self.stack = Stack([one.module for one in members], layers)
        self.batches = [len(bounds(len(one.records), settings.batch_size)) for one in members]
        # Networks with the same number of batches have the same number of updates behind them,
        # which is what an optimizer and its rate depend on: they are a group of parameters.
        self.counts = sorted(set(self.batches), reverse=True)
        starts = [self.batches.index(count) for count in self.counts]
        stops = [*starts[1:], len(members)]
        self.parts = [slice(*ends) for ends in zip(starts, stops, strict=True)]
        self.optimizer = settings.updates.optimizer(
            {"params": self.stack.parameters(part)} for part in self.parts
        )
        self.schedule = list(self._schedule(stops))

    def through(self) -> list[History]:
        """All epochs; how they went for each network."""
        histories: list[list[Figures]] = [[] for _ in self.members]
        going = set(range(len(self.members)))
        epoch = 0
        while going:
            epoch += 1
            losses = self._epoch(epoch)
            shares = self._shares()
            for number in sorted(going):
                if not math.isfinite(losses[number]):
                    module = self.members[number].module
                    self.stack.write_back(number, module)
                    X = self.X[self.members[number].records]
                    raise not_finite(module, losses[number], epoch, X)
                figures = Figures(losses[number], *shares[number])
                histories[number].append(figures)
                # One that has stopped is written down; that it goes on in the stack is for nothing.
                if epoch == self.settings.epochs or self.settings.reached(figures):
                    self.stack.write_back(number, self.members[number].module)
                    going.remove(number)
        for one in self.members:
            one.module.eval()
        return [History(tuple(one), torch.get_num_threads()) for one in histories]

    def _schedule(self, stops: Sequence[int]) -> Iterator[Batch]:
        """The batches of an epoch; stops: where each group ends in the stack."""
        size = self.settings.batch_size
        ends = [bounds(len(one.records), size) for one in self.members]
        for number in range(self.counts[0]):
            groups = sum(count > number for count in self.counts)
            sizes = [mine[number][1] - mine[number][0] for mine in ends[: stops[groups - 1]]]
            width = max(sizes)
            counted = torch.arange(width)[None] < torch.tensor(sizes)[:, None]
            shares = counted.to(self.X.dtype) / torch.tensor(sizes)[:, None]
            columns = slice(number * size, number * size + width)
            yield Batch(columns, sizes, shares, groups)

    def _epoch(self, epoch: int) -> list[float]:
        """One pass over the records; the mean loss of each network, (m,)."""
        # Where a network has no more records any will do: their share in its loss is 0.
        longest = len(self.members[0].records)
        order = torch.zeros(len(self.members), longest, dtype=torch.int64)
        for row, one in zip(order, self.members, strict=True):
            n = len(one.records)
            row[:n] = one.records[torch.randperm(n, generator=one.order)]
        losses = torch.zeros(len(self.members), dtype=torch.float64)
        for number, batch in enumerate(self.schedule):
            a = len(batch.sizes)
            chosen = order[:a, batch.columns]
            for count, group in zip(self.counts, self.optimizer.param_groups, strict=True):
                self.settings.updates.set_rate(group, (epoch - 1) * count + number)
            losses[:a] += self._update(chosen, batch) * torch.tensor(batch.sizes)
        lengths = torch.tensor([len(one.records) for one in self.members])
        return (losses / lengths).tolist()

    def _update(self, chosen: Tensor, batch: Batch) -> Tensor:
        """One step of the optimizer on the records at these positions (a, b); the losses (a,)."""
        masks = Masks([one.dropout for one in self.members], batch.sizes)
        outputs = self.stack.forward(self._rows(chosen), masks)
        losses = stacked_loss(str(self.settings.loss), outputs, self.y[chosen], batch.shares)
        torch.autograd.backward(losses.sum())
        gradients = self.stack.take_gradients()
        for place, part in enumerate(self.parts):
            # A group without a batch has no gradient, and is left as it is.
            takes_part = place < batch.groups
            for value, one in zip(self._values(place), gradients, strict=True):
                value.grad = one[part] if takes_part else None
        self.optimizer.step()
        return losses.detach()

    def _values(self, place: int) -> list[Tensor]:
        """The parameters of a group of networks."""
        values: list[Tensor] = self.optimizer.param_groups[place]["params"]
        return values

    def _rows(self, chosen: Tensor) -> Tensor:
        """The records at these positions (a, b), as (a, b, d)."""
        return self.X.index_select(0, chosen.reshape(-1)).view(*chosen.shape, -1)

    def _shares(self) -> list[tuple[float | None, float | None]]:
        """The shares of right predictions in training and in validation, where asked for."""
        validated = any(one.validation is not None for one in self.members)
        if self.y.is_floating_point() or not (self.settings.watches or validated):
            return [(None, None)] * len(self.members)
        trained = self._right([one.records for one in self.members])
        held_out = self._right([one.validation for one in self.members])
        return list(zip(trained, held_out, strict=True))

    @torch.no_grad()
    def _right(self, records: Sequence[Tensor | None]) -> list[float | None]:
        """The share of right predictions of each network on records of its own."""
        lengths = [0 if one is None else len(one) for one in records]
        if not any(lengths):
            return [None] * len(records)
        chosen = torch.zeros(len(records), max(lengths), dtype=torch.int64)
        for row, one in zip(chosen, records, strict=True):
            if one is not None:
                row[: len(one)] = one
        right = [
            accurate(self.stack.forward(self._rows(part)), self.y[part])
            for start in range(0, chosen.shape[1], LOOKED_AT)
            for part in [chosen[:, start : start + LOOKED_AT]]
        ]
        found = torch.cat(right, dim=1)
        return [
            int(row[:n].sum()) / n if n else None for row, n in zip(found, lengths, strict=True)
        ]
