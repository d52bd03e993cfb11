"""The models of a comparison: trained once, found again in the store, and judged one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.auditing.battery import applies, channel_of, released
from leakscope.auditing.shadows import Dealing
from leakscope.comparing.costs import Cost, Measured
from leakscope.comparing.defending import Defended
from leakscope.comparing.dividing import REFERENCE, Division, Seat
from leakscope.comparing.judging import Judged, Trained, judge_model
from leakscope.errors import ModelError
from leakscope.protocols import Attack, Model, Progress
from leakscope.records import Records
from leakscope.trials import Trials, run_trials
from leakscope.trials.packing import unpack
from leakscope.trials.store import MANIFEST, Store


@dataclass(frozen=True)
class Place:
    """Where models are trained and kept; store: None keeps them as long as they are looked at."""

    store: Path | None = None
    workers: int | None = None
    backend: str = "local"
    address: str | None = None
    fresh: bool = False

    def options(self) -> dict[str, Any]:
        """As ``run_trials`` takes them."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Bench:
    """All that is the same for every defense: the pool, its divisions, the attacks.

    records: the pool, in canonical order.
    """

    records: Records
    divisions: Sequence[Division]
    attacks: Sequence[Attack]
    shadows: int
    seed: int
    place: Place
    progress: Progress

    @cached_property
    def seats(self) -> list[Seat]:
        """What the models of each seed are judged on."""
        return [
            Seat.of(self.records, division, number, self.seed)
            for number, division in enumerate(self.divisions)
        ]

    @cached_property
    def blocks(self) -> int:
        """How many different records or persons the pool has."""
        return int(self.records.blocks().max()) + 1

    def judge(self, defended: Defended) -> list[Judged]:
        """Train the models of all seeds, or find them, and judge each."""
        trials = run_trials(
            Measured.of(defended.recipe),
            self.records,
            np.stack([division.roles for division in self.divisions]),
            [Cost()],
            seed=self.seed,
            progress=_about(defended.name, self.progress),
            **self.place.options(),
        )
        return [
            self._judged(defended, trained, seat)
            for trained, seat in zip(_fetched(trials), self.seats, strict=True)
        ]

    def _judged(self, defended: Defended, trained: Trained, seat: Seat) -> Judged:
        progress = _about(f"{defended.name}, seed {seat.number}", self.progress)
        return judge_model(
            defended,
            trained,
            seat,
            self.attacks,
            self._shadow_models(defended, trained.model, seat, progress),
            blocks=self.blocks,
            seed=self.seed,
            progress=progress,
        )

    def _shadow_models(
        self, defended: Defended, model: Model, seat: Seat, progress: Progress
    ) -> Trials | None:
        """Models of the same defended recipe on other draws, seen as the target is.

        They share D′ with the target, as whoever knows the defense would have one.
        """
        names = sorted(
            {
                one.channel
                for one in self.attacks
                if one.shadows and applies(one.channel, one, model)
            }
        )
        if not self.shadows or not names:
            return None
        release = defended.combination.release(model, seat.members, seat.reference)
        channels = {name: released(channel_of(name, self.seed), release) for name in names}
        asked = seat.division.asked
        everyone = np.sort([*asked, *np.flatnonzero(seat.division.roles == REFERENCE)])
        place = np.searchsorted(everyone, asked)
        roles = np.full((self.shadows, len(everyone)), REFERENCE, dtype=np.int8)
        roles[:, place] = Dealing(seat.blocks, seat.membership, self.shadows).deal(self.seed)
        trials = run_trials(
            defended.recipe,
            self.records.take(everyone),
            roles,
            list(channels.values()),
            seed=self.seed,
            classes=model.classes,
            progress=progress,
            **self.place.options(),
        )
        seen = {
            name: trials.observations[channel.name][:, place] for name, channel in channels.items()
        }
        return Trials(roles[:, place], seen, trials.seeds)


def _fetched(trials: Trials) -> Iterator[Trained]:
    """The models of a run, one after another, with what their training took."""
    assert trials.folder is not None
    store = Store(trials.folder)
    manifest = json.loads((trials.folder / MANIFEST).read_text("utf-8"))
    costs = trials.observations[Cost.name][:, 0]
    for entry, (seconds, epochs) in zip(manifest["models"], costs.tolist(), strict=True):
        packed = store.model(entry["key"])
        if packed is None:
            raise ModelError(
                f"Models of the recipe {manifest['recipe']['name']!r} could not be written to a "
                "file, from which they would be judged; define their class in a module"
            )
        yield Trained(unpack(packed), seconds, epochs)


def _about(name: str, progress: Progress) -> Progress:
    """The same progress, with the defense it is about."""

    def tell(step: str, done: int, total: int) -> None:
        progress(f"{name}: {step}", done, total)

    return tell
