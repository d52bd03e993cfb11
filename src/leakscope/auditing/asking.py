"""How many records an audit asks a model behind HTTP about: what fits its budget, what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from leakscope.auditing.battery import applies, channel_of
from leakscope.controls.constant import constant_model
from leakscope.errors import LeakscopeError, OracleBudgetError
from leakscope.models.http import HttpModel
from leakscope.models.service import Spent
from leakscope.protocols import Attack, Model
from leakscope.records import Features, Records

# On so many records it is tried how many questions a channel asks about each.
SAMPLE = 8


@dataclass(frozen=True, eq=False)
class Asking:
    """A model behind HTTP and what it was asked before this audit; nothing for any other model."""

    remote: HttpModel | None = None
    before: Spent = field(default_factory=Spent)

    @classmethod
    def of(cls, model: Model) -> Asking:
        """The service that answers for this model, with its count as it stands."""
        function = getattr(model, "function", None)
        return cls(function, function.spent.copy()) if isinstance(function, HttpModel) else cls()

    def check(self, sides: Sequence[Records]) -> None:
        """Refuse a budget that has no room for every record once, before any is sent."""
        if self.remote is None or self.remote.remaining is None:
            return
        needed, left = self.remote.unasked(*(side.X for side in sides)), self.remote.remaining
        if needed > left:
            asked = self.remote.spent.records
            raise OracleBudgetError(
                f"The audit asks {self.remote.__name__} about {needed:,} records at least, and "
                f"{asked:,} of the {self.remote.budget:,} that the budget allows were asked about "
                f"before; give a budget of at least {asked + needed:,}, or audit fewer records"
            )

    def affordable(
        self, attacks: Sequence[Attack], model: Model, records: Records, seed: int
    ) -> tuple[list[Attack], dict[str, str]]:
        """The attacks that the budget has room for, in their order, and why others have none.

        Attacks that ask about the records alone are free once these were asked about.
        """
        if self.remote is None or self.remote.remaining is None:
            return list(attacks), {}
        left = self.remote.remaining - self.remote.unasked(records.X)
        kept, not_run, paid = list[Attack](), dict[str, str](), set[str]()
        for attack in attacks:
            name = attack.channel
            if name not in paid and applies(name, attack, model):
                more = len(records) * questions_about_each(name, model, records, seed)
                if more > left:
                    enough = (self.remote.budget or 0) - left + more
                    not_run[attack.name] = (
                        f"It asks {model.name} about {more:,} records more, and the budget of "
                        f"{self.remote.budget:,} leaves {left:,}; {enough:,} would be enough."
                    )
                    continue
                left -= more
                paid.add(name)
            kept.append(attack)
        return kept, not_run

    def cost(self) -> dict[str, Any]:
        """What this audit asked the service and how long it waited, for the report."""
        if self.remote is None:
            return {}
        spent = self.remote.spent.since(self.before)
        return {
            "queries": spent.records,
            "requests": spent.requests,
            "retries": spent.retries,
            "seconds_waiting": round(spent.seconds, 3),
        }


LOCAL = Asking()


def questions_about_each(channel: str, model: Model, records: Records, seed: int) -> int:
    """How many records a channel asks about for each one it observes, beside that one itself.

    A model that says the same of everyone is asked in place of the real one, and counts.
    """
    sample = records.take(np.arange(min(SAMPLE, len(records))))
    stand_in = constant_model(model, sample)
    answer, asked = stand_in.function, 0

    def counting(X: Any) -> Any:
        nonlocal asked
        asked += 0 if _equal(X, sample.X) else len(X)
        return answer(X)

    stand_in.function = counting
    try:
        channel_of(channel, seed).observe(stand_in, sample)
    except LeakscopeError:
        return 0  # the attack will say why
    return -(-asked // len(sample))


def _equal(X: Any, sample: Features) -> bool:
    """Whether these are the records of the sample: a function is given a copy of them."""
    if isinstance(sample, pd.DataFrame):
        return sample.equals(X)
    return np.array_equal(X, sample, equal_nan=sample.dtype.kind == "f")
