"""A network in training against one that infers membership: the min-max game of Nasr et al. 2018.

Nasr, Shokri & Houmansadr, "Machine Learning with Membership Privacy using Adversarial
Regularization", Algorithm 1; Wang et al. 2020 print the same gain as their Eq. 1, where the second
expectation must be over D′, the records that are no members.

Shapes: n records, k classes; the inference network's answer is a logit, h = sigmoid(logit).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from leakscope.networks.blocks import draw_normal
from leakscope.networks.losses import loss_function
from leakscope.networks.mlp import MLP
from leakscope.networks.optimizers import Updates
from leakscope.networks.seeding import drawing_from
from leakscope.networks.stages import Stage
from leakscope.networks.tracing import evaluating


class InferenceNetwork(nn.Module):
    """Tells members by a model's probabilities and the true label, as in Nasr et al. 2018.

    Sub-networks of 1024, 512 and 64 units for the probabilities, of 512 and 64 for the label, and
    of 256, 64 and one unit for both; ReLU, weights from N(0, 0.01²), biases of 0.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.prediction = nn.Sequential(MLP([classes, 1024, 512, 64], "relu"), nn.ReLU())
        self.label = nn.Sequential(MLP([classes, 512, 64], "relu"), nn.ReLU())
        self.joined = MLP([128, 256, 64, 1], "relu")
        draw_normal(self)

    def forward(self, probabilities: Tensor, labels: Tensor) -> Tensor:
        """The logit of membership of each record, (n,); both (n, k), the labels one-hot."""
        read = torch.cat([self.prediction(probabilities), self.label(labels)], dim=1)
        logit: Tensor = self.joined(read)
        return logit.squeeze(1)


def gain(members: Tensor, others: Tensor) -> Tensor:
    """What an inference network gains: the mean of log h of members, plus that of log(1 − h).

    From the logits of members (n,) and of others (m,). It is −log 4 for one that guesses; the best
    that there is has −log 4 + 2·JS, JS being the divergence of what it sees of the two.
    """
    return functional.logsigmoid(members).mean() + functional.logsigmoid(-others).mean()


def class_probabilities(logits: Tensor) -> Tensor:
    """The probability of each class, (n, k); one logit, (n,) or (n, 1), is that of class 1."""
    if logits.ndim == 1 or logits.shape[1] == 1:
        second = logits.reshape(-1)
        return torch.stack([-second, second], dim=1).sigmoid()
    return logits.softmax(dim=1)


class MembershipGame:
    """An inference network that learns beside a network in training.

    members, others: X (n, …) and class numbers y (n,) of the members, and of the D′ it tells them
    from. steps: its updates, by Adam at the rate lr, each time it may learn; batch: how many
    members, and as many others, each of them takes, or None for half of the model's batch, so that
    both have as many records. random: where its weights and its batches are drawn from.
    """

    def __init__(
        self,
        members: tuple[Tensor, Tensor],
        others: tuple[Tensor, Tensor],
        logits: Tensor,
        *,
        steps: int = 2,
        batch: int | None = None,
        lr: float = 1e-3,
        random: torch.Generator,
    ) -> None:
        """Logits: what the model gives for some records, for how many classes and how precisely."""
        self.members, self.others, self.random = members, others, random
        self.steps, self.batch = steps, batch
        self.classes = class_probabilities(logits).shape[1]
        with drawing_from(random):
            self.network = InferenceNetwork(self.classes).to(logits.dtype)
        parameters = list(self.network.parameters())
        self.optimizer = Updates("adam", lr).optimizer([{"params": parameters}])

    def learn(self, module: nn.Module, size: int) -> None:
        """Update the inference network against a model that stays as it is.

        size: of the model's batch. The model is asked in evaluation mode, as an adversary will ask
        it, and so nothing happens to its dropout and its batch statistics.
        """
        size = self.batch or (size + 1) // 2
        with evaluating(module), torch.no_grad():
            # About the records of all steps at once.
            of_members = self._seen(module, *self.members, size * self.steps)
            of_others = self._seen(module, *self.others, size * self.steps)
        for step in range(self.steps):
            part = slice(step * size, (step + 1) * size)
            pairs = zip(of_members, of_others, strict=True)
            logits = self.network(*(torch.cat([one[part], two[part]]) for one, two in pairs))
            self.optimizer.zero_grad()
            torch.autograd.backward(-gain(logits[:size], logits[size:]))
            self.optimizer.step()

    def log_membership(self, logits: Tensor, y: Tensor) -> Tensor:
        """The mean of log h over records of class numbers y (n,) for which a model gave logits.

        The inference network itself gets no gradients of it.
        """
        fixed = {name: one.detach() for name, one in self.network.named_parameters()}
        seen = self._inputs(logits, y)
        inferred: Tensor = torch.func.functional_call(self.network, fixed, seen)
        return functional.logsigmoid(inferred).mean()

    def _seen(self, module: nn.Module, X: Tensor, y: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """What is seen of so many records, drawn with replacement: two tensors (number, k)."""
        drawn = torch.randint(len(y), (number,), generator=self.random)
        return self._inputs(module(X[drawn]), y[drawn])

    def _inputs(self, logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        probabilities = class_probabilities(logits)
        return probabilities, functional.one_hot(y, self.classes).to(probabilities)


def play(stage: Stage, game: MembershipGame, gamma: float) -> None:
    """From now on the network of a stage is trained against the game's inference network.

    Its loss is the one before and gamma times the mean log h of the members in a batch, before
    which the inference network learns. That is all of the gain that a batch of members moves, and
    what Nasr et al. descend in their Algorithm 1. The term of D′ stays with the inference network:
    descended as well, it would train the model on D′. With gamma = 0 nothing changes at all.
    """
    loss = loss_function(stage.settings.loss)

    def guarded(logits: Tensor, y: Tensor) -> Tensor:
        game.learn(stage.module, len(y))
        return loss(logits, y) + gamma * game.log_membership(logits, y)

    stage.settings = replace(stage.settings, loss=guarded)
