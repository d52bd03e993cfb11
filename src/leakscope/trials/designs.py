"""Designs: which records each model is trained on; pure functions of sizes and a seed.

A design is a matrix of roles (m, n) int8, one row per model: 0 left out, 1 member. Rows are dealt
out one after another, so that a longer run begins with the models of a shorter one and a store of
32 models serves a run of 64. The records are n numbers here: to keep a person's rows and equal
records together, design over blocks and expand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError

Roles = NDArray[np.int8]


def random_halves(n: int, models: int, seed: int) -> Roles:
    """Random halves in complementary pairs: who is in row 2j is not in row 2j+1, (models, n).

    Each model has n/2 members (n//2 and the rest where n is odd), and each record is in exactly
    half of the models: as many models know it as do not. A model and its complement must not be
    target and shadow of one attack: ``Trials.as_target`` keeps them apart.
    """
    _check_at_least("records", n, 2)
    if models < 2 or models % 2:
        raise InputError(
            f"Random halves come in complementary pairs, and {models} models are no pairs; ask for "
            "an even number of models"
        )
    dealer = _dealer(seed)
    roles = np.zeros((models, n), dtype=np.int8)
    for row in range(0, models, 2):
        order = dealer.permutation(n)
        roles[row, order[: n // 2]] = 1
        roles[row + 1, order[n // 2 :]] = 1
    return roles


def independent_halves(n: int, models: int, seed: int) -> Roles:
    """Random halves drawn independently of each other, (models, n).

    Parameters
    ----------
    n : int
        The number of records.
    models : int
        The number of models, odd or even.
    seed : int
        Its rows are the even rows of ``random_halves`` with this seed.

    Returns
    -------
    roles : (models, n) int8
        Each model has n // 2 members. A record is in about half of the models: the number is
        binomial. LiRA needs 2 models with each record and 2 without it, so that 200 records take
        about 20 models. With fewer models use ``random_halves`` and ``Trials.as_target``.
    """
    _check_at_least("records", n, 2)
    _check_at_least("models", models, 1)
    return random_halves(n, 2 * models, seed)[::2].copy()


def fixed_size(n: int, size: int, models: int, seed: int) -> Roles:
    """Random subsets of one size, dealt so that all records are used equally often, (models, n).

    Records are dealt like cards from a shuffled deck, and a new deck is opened when one is used
    up: after any number of models each record was in floor or ceil of models · size / n of them.
    So the other models tell who is in one of them: these rows are for shadow models of a target
    that was trained apart, as in an audit. Each row by itself is any subset of its size with equal
    chances, because nothing but chance tells one record from another.
    """
    _check_at_least("records", n, 1)
    _check_at_least("models", models, 1)
    if not 1 <= size <= n:
        raise InputError(f"A model cannot have {size} of {n} records; ask for 1 to {n}")
    dealer = _dealer(seed)
    roles = np.zeros((models, n), dtype=np.int8)
    deck = dealer.permutation(n)
    for row in roles:
        hand, deck = deck[:size], deck[size:]
        row[hand] = 1
        missing = size - len(hand)
        if missing:
            # The next deck: its first cards go to those the hand lacks, the rest come after them.
            new = dealer.permutation(np.flatnonzero(row == 0))
            row[new[:missing]] = 1
            deck = dealer.permutation(np.concatenate([new[missing:], hand]))
    return roles


def paired(n: int, size: int, record: int, pairs: int, seed: int) -> Roles:
    """Pairs of models with (row 2j) and without (row 2j+1) one record, (2 · pairs, n).

    Both of a pair have the same size − 1 other members; the record completes the one, and one more
    random record the other, so that both are of the same size.
    """
    _check_at_least("pairs", pairs, 1)
    _check_positions(np.array([record]), n)
    if not 1 <= size <= n - 1:
        raise InputError(
            f"A model cannot have {size} members without record {record} of {n} records; ask for 1 "
            f"to {n - 1}"
        )
    dealer = _dealer(seed)
    others = np.delete(np.arange(n), record)
    roles = np.zeros((2 * pairs, n), dtype=np.int8)
    for row in range(0, 2 * pairs, 2):
        drawn = dealer.permutation(others)[:size]
        roles[row, [*drawn[1:], record]] = 1
        roles[row + 1, drawn] = 1
    return roles


def leave_one_out(n: int, records: Sequence[int] | NDArray[np.integer] | None = None) -> Roles:
    """One model per record asked for (all by default), trained on everybody else, (m, n)."""
    _check_at_least("records", n, 2)
    left_out = np.arange(n) if records is None else np.asarray(records)
    _check_positions(left_out, n)
    roles = np.ones((len(left_out), n), dtype=np.int8)
    roles[np.arange(len(left_out)), left_out] = 0
    return roles


def bootstrap(n: int, models: int, seed: int) -> Roles:
    """Who was drawn at least once in n draws with replacement, (models, n).

    Roles tell who is in, not how often: a model of this design is trained once on each record
    drawn, about 63 % of them, where a bootstrap proper would repeat some.
    """
    _check_at_least("records", n, 2)
    _check_at_least("models", models, 1)
    dealer = _dealer(seed)
    roles = np.zeros((models, n), dtype=np.int8)
    for row in roles:
        row[dealer.integers(n, size=n)] = 1
    return roles


def expand(roles: Roles, blocks: NDArray[np.integer]) -> Roles:
    """A design over blocks (m, b) as one over records (m, n), given each record's block (n,).

    Blocks are those of ``Records.blocks``. What is exact for blocks (sizes, how often each is in)
    is so for records only where all blocks are of one size.
    """
    there = roles.shape[1]
    if len(blocks) == 0 or not np.array_equal(np.unique(blocks), np.arange(there)):
        raise InputError(
            f"A design over {there} blocks cannot be expanded by blocks numbered otherwise than 0 "
            f"to {there - 1}; design over as many blocks as there are"
        )
    return roles[:, blocks]


def model_seeds(seed: int, models: int) -> list[int]:
    """One seed below 2³² per model; the first are the same for any number of models."""
    _check_at_least("models", models, 1)
    children = _streams(seed)[1].spawn(models)
    return [int(child.generate_state(1, np.uint32)[0]) for child in children]


def _streams(seed: int) -> list[np.random.SeedSequence]:
    """Two sources of chance, for designs and for models.

    Neither is the seed's own, from which an audit draws its splits and folds: a design must not
    repeat the permutation that decided who is a member of the target.
    """
    if seed < 0:
        raise InputError(f"A seed of {seed} is negative; give 0 or more")
    return np.random.SeedSequence(seed).spawn(2)


def _dealer(seed: int) -> np.random.Generator:
    return np.random.default_rng(_streams(seed)[0])


def _check_at_least(what: str, number: int, least: int) -> None:
    if number < least:
        raise InputError(f"A design of {number} {what} is empty; ask for {least} or more {what}")


def _check_positions(positions: ArrayLike, n: int) -> None:
    given = np.asarray(positions)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InputError("Records are asked for by one or more whole numbers; give their positions")
    outside = given[(given < 0) | (given >= n)]
    if outside.size:
        raise InputError(
            f"There is no record {outside[0]} among {n} records; give positions from 0 to {n - 1}"
        )
