"""A battery of attacks on one model: channels observed once, each attack given its evidence."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from leakscope.auditing.choosing import attack_of, how_to_ask, parts_of, requested, shown_through
from leakscope.channels.joined import PLUS, Joined
from leakscope.errors import InputError, LeakscopeError, NotApplicableError
from leakscope.evidence import Evidence, Folds
from leakscope.models import class_numbers
from leakscope.protocols import Attack, Bools, Channel, Floats, Knowledge, Model, Progress
from leakscope.records import Records
from leakscope.records.checks import listed
from leakscope.registry import entries, lookup
from leakscope.trials import Trials, drawn_together

_LOG = logging.getLogger(__name__)

# What tells of the target's own members, and comes through the two doors of Evidence.
OF_MEMBERS: tuple[Knowledge, ...] = ("average training loss", "members of the other half")


# What is done to a channel before anybody sees through it.
Release = Callable[[Channel], Channel]


def as_it_is(channel: Channel) -> Channel:
    """The channel itself: nothing is held back."""
    return channel


@dataclass(frozen=True)
class Shot:
    """One attack's scores (n,) and the threshold of its own, if it has one.

    models: how many models it rests on, the target and the shadows it used.
    """

    attack: Attack
    scores: Floats
    threshold: float | None
    models: int = 1

    @property
    def taught(self) -> bool:
        """Whether known members of one half taught it to score the other."""
        return self.attack.knowledge == "members of the other half"

    @property
    def inflation(self) -> float:
        """By what to multiply variances: 2 where each half taught the attack on the other.

        The two halves' scores then depend on each other. Their covariance is at most the variance
        of one, so twice the variance of independent halves is enough; simulated under the null,
        simple learners come to 1.9.
        """
        return 2.0 if self.taught else 1.0


@dataclass(frozen=True)
class Battery:
    """What ran, by the attack's name, and why the others did not."""

    shots: dict[str, Shot]
    not_run: dict[str, str]


def choose_attacks(
    attacks: Sequence[str | Attack] | None, channels: Sequence[str] | None
) -> tuple[list[Attack], dict[str, str]]:
    """The attacks asked for, and the reason for each that is left out.

    By default all but those that run on request: by their name, by that of a channel which only
    such attacks see, or all through explanations together by the word ``explanations``. An attack
    through several channels runs if all of them are asked for.
    """
    if isinstance(attacks, str) or isinstance(channels, str):
        raise InputError("Attacks and channels are given as lists of names, such as ['loss']")
    asked: dict[str, Attack] = {}
    seen = shown_through(channels or ())
    by_default = [one for one in _every() if not one.on_request or requested(one, channels)]
    for one in by_default if attacks is None else attacks:
        attack = attack_of(one) if isinstance(one, str) else one
        if isinstance(attack, type):
            raise InputError(f"The attack {attack.__name__} is a class; give {attack.__name__}()")
        if attack.name in asked:
            raise InputError(
                f"Two attacks are named {attack.name!r}, and a result must keep its name; "
                "ask for one, or give one of them another name"
            )
        asked[attack.name] = attack
    chosen = [one for one in asked.values() if channels is None or parts_of(one) <= seen]
    if not chosen:
        raise InputError(
            f"None of the attacks {listed(asked)} goes through the channels "
            f"{listed(channels or ())}; `leakscope attacks` says which does"
            if asked
            else "No attack was asked for; leave attacks= out for all of them"
        )
    left_out = {
        one.name: f"It runs on request, by its name or by --channels {how_to_ask(one)}."
        if one.on_request
        else "It was not asked for."
        for one in _every()
        if one.name not in asked
    }
    for name, attack in asked.items():
        if attack not in chosen:
            left_out[name] = f"Its channel {attack.channel!r} was not asked for."
    return chosen, left_out


def _every() -> list[Attack]:
    return [entry.thing() for entry in entries("attack")]


def run_battery(
    model: Model,
    records: Records,
    membership: Bools,
    folds: Folds,
    attacks: Sequence[Attack],
    seed: int,
    progress: Progress,
    *,
    trials: Trials | None = None,
    release: Release = as_it_is,
) -> Battery:
    """Every attack on one model; records in canonical order, membership (n,).

    Several channels ask the model the same: hand in one that remembers its answers. trials: the
    shadow models, observed through the channels of the attacks that need them. release: what a
    defense does to each channel of the model; the shadow models' are as they were observed.
    """
    if trials is not None:
        _warn_of_complements(membership, trials)
    observed: dict[str, Floats | LeakscopeError] = {}
    shots: dict[str, Shot] = {}
    not_run: dict[str, str] = {}
    for step, attack in enumerate(attacks):
        progress(f"running {attack.name}", step, len(attacks))
        _LOG.debug("running %s on %s", attack.name, model.name)
        try:
            if model.task not in attack.tasks:
                raise NotApplicableError(
                    f"It attacks {' and '.join(attack.tasks)}, not {model.task}."
                )
            if attack.channel not in observed:
                channel = released(channel_of(attack.channel, seed), release)
                observed[attack.channel] = _observe(attack.channel, channel, model, records)
            seen = observed[attack.channel]
            if isinstance(seen, LeakscopeError):
                raise seen
            _check_shadows(attack, model, trials)
            shots[attack.name] = _shoot(
                attack, model, records, membership, folds, seen, seed=seed, trials=trials
            )
        except LeakscopeError as reason:
            # Named in the report with its reason: never skipped in silence.
            not_run[attack.name] = str(reason)
            _LOG.info("%s does not run on %s: %s", attack.name, model.name, reason)
    progress("done", len(attacks), len(attacks))
    return Battery(shots, not_run)


def _check_shadows(attack: Attack, model: Model, trials: Trials | None) -> None:
    there_are = 0 if trials is None else len(trials)
    if attack.shadows and there_are == 0:
        again = (
            "give --shadows 32 (shadows=32), and a recipe where the model is not scikit-learn's."
            if "queries" in model.abilities
            else "and saved predictions do not tell how to train any."
        )
        raise NotApplicableError(f"It needs shadow models; {again}")
    if there_are < attack.shadows:
        raise NotApplicableError(
            f"It needs {attack.shadows} shadow models at least, and the audit has {there_are}."
        )


def applies(name: str, attack: Attack, model: Model) -> bool:
    """Whether an attack through the channel of this name can be tried on this kind of model."""
    return model.task in attack.tasks and channel_of(name, 0).needs <= model.abilities


def channel_of(name: str, seed: int) -> Channel:
    """The channel of this name, with the seed of the audit where it draws anything.

    "a+b" is what the channels a and b show, side by side.
    """
    parts: list[Channel] = [
        _seeded(lookup("channel", part).thing(), seed) for part in name.split(PLUS)
    ]
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def _seeded(channel: Any, seed: int) -> Any:
    """The channel, and whatever channel it is made of, with this seed."""
    options = {option.name: getattr(channel, option.name) for option in fields(channel)}
    inner = {name: _seeded(one, seed) for name, one in options.items() if is_dataclass(one)}
    return replace(channel, **inner, **({"seed": seed} if "seed" in options else {}))


def released(channel: Channel, release: Release) -> Channel:
    """The channel as it is released; of several side by side, each."""
    if isinstance(channel, Joined):
        return Joined(tuple(release(part) for part in channel.parts))
    return release(channel)


def _observe(
    name: str, channel: Channel, model: Model, records: Records
) -> Floats | LeakscopeError:
    missing = sorted(channel.needs - model.abilities)
    if missing:
        return NotApplicableError(f"The {name} channel needs {_told(missing)} {model.name} lacks.")
    try:
        seen = channel.observe(model, records)
    except LeakscopeError as error:
        return error
    broken = np.flatnonzero(~np.isfinite(seen).all(axis=1))
    if len(broken):
        return NotApplicableError(
            f"The {name} channel of {model.name} shows a number that is not finite for "
            f"{len(broken)} of {len(records)} records."
        )
    return seen


def _told(abilities: Sequence[str]) -> str:
    said = {
        "labels": "predicted labels",
        "probabilities": "class probabilities",
        "loss": "a loss",
        "queries": "answers to new queries",
        "gradients": "gradients by the features",
        "records": "the training records that explain it",
    }
    return " and ".join(said.get(one, one) for one in abilities) + ", which"


def _warn_of_complements(membership: Bools, trials: Trials) -> None:
    """Warn where shadow models have the members (n,) of the target, or exactly the others."""
    number = int(drawn_together(membership, trials.membership).sum())
    if number:
        warnings.warn(
            f"{number} of {len(trials)} shadow models have the target's own members, or exactly "
            "the others: they give its members away and bias attacks such as lira; use another "
            "seed, or trials.as_target",
            stacklevel=3,
        )


def _shoot(
    attack: Attack,
    model: Model,
    records: Records,
    membership: Bools,
    folds: Folds,
    observations: Floats,
    *,
    seed: int,
    trials: Trials | None,
) -> Shot:
    labels: Any = (
        np.asarray(records.y, dtype=np.float64)
        if model.classes is None
        else class_numbers(model, records.y)
    )
    evidence = Evidence(
        task=model.task,
        observations=observations,
        labels=labels,
        classes=0 if model.classes is None else len(model.classes),
        folds=folds,
        seed=seed,
        knowledge=attack.knowledge,
        # An attack that declares no knowledge of the members is given none.
        _membership=membership if attack.knowledge in OF_MEMBERS else None,
    )
    models = 1
    if trials is not None and attack.shadows:
        models += len(trials)
        evidence = replace(
            evidence,
            shadow_membership=trials.membership,
            shadow_observations=trials.observations[attack.channel],
        )
    scores = np.asarray(attack.score(evidence), dtype=np.float64)
    if scores.shape != membership.shape or not np.isfinite(scores).all():
        raise NotApplicableError(
            f"The {attack.name} attack gave scores of shape {scores.shape}, "
            f"{int((~np.isfinite(scores)).sum())} not finite, for {len(membership)} records."
        )
    return Shot(attack, scores, attack.threshold(evidence), models)
