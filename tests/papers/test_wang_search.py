from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leakscope.comparing.dividing import MEMBER, REFERENCE
from leakscope.comparing.running import Bench
from leakscope.defenses.pruning import BudgetSearch, Candidate, Pruning
from leakscope.papers import wang_comparing, wang_grounds, wang_setups
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_comparing import first_models, plan_of
from leakscope.papers.wang_grounds import (
    FEWEST,
    RATES,
    Found,
    Ground,
    gain_of,
    ground_of,
    search,
    together,
)
from leakscope.papers.wang_search import least_gain, notes_on
from leakscope.papers.wang_setups import LOCATION, MNIST, SEARCHED, SETUPS, Pool
from leakscope.protocols import Model
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

TINY = replace(
    wang_setups.STAND_IN, dataset="synthetic", members={"quick": 60},
    options={"n": 200, "features": 10, "classes": 3}, training={"epochs": 1},
    pruning=Pruning(4, epochs=1, retrain=1),
)  # fmt: skip
FEW = RATES[:2]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.setattr(wang_setups, "STAND_IN", TINY)
    monkeypatch.setattr(wang_grounds, "RATES", FEW)
    return Setting(seeds=2, workers=1)


def pool_of(setting: Setting) -> Pool:
    return Pool(TINY, TINY.load(setting))


def test_a_row_for_each_candidate_and_one_is_chosen(tiny: Setting) -> None:
    experiment = least_gain(tiny)
    names = ["prune:4 (epochs 1; retrain 1)", "prune:4 (epochs 1; retrain 1; rate 1, then 0.1)"]
    assert [row["defense"] for row in experiment.rows] == ["none", *names]
    plain, *others = experiment.rows
    total = 10 * 256 + 256 * 128 + 128 * 3
    assert [row["weights"] for row in experiment.rows] == [total, total // 4, total // 4]
    assert (plain["allowed"], plain["chosen"]) == (None, None)
    least = plain["reference_accuracy"] - wang_grounds.TOLERANCE
    for row in others:
        assert row["allowed"] is (row["reference_accuracy"] >= least - 1e-12)
        assert row["gain"] >= -math.log(4)
    allowed = [row for row in others if row["allowed"]]
    chosen = [row for row in others if row["chosen"]]
    if allowed:
        best = min(allowed, key=lambda row: (row["gain"], -row["reference_accuracy"]))
        assert chosen == [best]
        assert f"{best['defense']} is chosen" in experiment.notes[1]
    else:
        assert not chosen
    assert experiment.setup["setups"][TINY.name]["members"] == 60
    assert experiment.setup["records"] == {TINY.name: "those of the tables"}
    assert experiment.setup["seeds"] == 2


def test_every_set_up_is_searched_on_its_own_records(
    tiny: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on records apart, the other on those of the tables, each with rows and notes."""
    assert [*SEARCHED] == [MNIST.name, LOCATION.name]
    apart = {**TINY.options, "n": 150, "seed": 1}
    monkeypatch.setitem(SETUPS, MNIST.name, replace(TINY, name=MNIST.name, apart=apart))
    monkeypatch.setitem(SETUPS, LOCATION.name, replace(TINY, name=LOCATION.name))
    experiment = least_gain(tiny)
    assert [row["setup"] for row in experiment.rows] == [
        name for name in SEARCHED for _ in range(1 + len(FEW))
    ]
    for name in SEARCHED:
        assert sum(row["chosen"] is True for row in experiment.rows if row["setup"] == name) <= 1
        for said in ("undefended network", "chosen", "by one seed alone would be chosen"):
            assert any(note.startswith(name) and said in note for note in experiment.notes)
    (shared,) = [note for note in experiment.notes if "are those of the tables" in note]
    assert shared.startswith(LOCATION.name)
    described = experiment.setup["setups"]
    assert [described[name]["members"] for name in SEARCHED] == [50, 60]
    assert list(experiment.setup["records"].values()) == [
        "none of them is in a table", "those of the tables",
    ]  # fmt: skip


def test_the_choice_of_the_tables_is_among_the_candidates() -> None:
    for name in SEARCHED:
        pruning = SETUPS[name].pruning
        assert (pruning.rate, pruning.retrain_rate) in RATES
        assert replace(pruning, rate=1, retrain_rate=1) == Pruning()


def test_as_many_seeds_as_the_tables_have() -> None:
    pool = Pool(replace(TINY, members={"quick": 60, "full": 60}), TINY.load(Setting()))
    for setting in (Setting(), Setting(scale="full"), Setting(seeds=4)):
        divisions = plan_of(pool, ["prune"], setting).divisions
        assert len(ground_of(pool, setting).divisions) == len(divisions)
    assert len(ground_of(pool, Setting()).divisions) == 3


def test_the_divisions_are_those_of_the_tables(
    tiny: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the comparison that makes the tables itself, whatever the order of the records."""
    seen: list[Bench] = []

    def judge(bench: Bench, *_: object) -> None:
        seen.append(bench)
        raise InterruptedError

    monkeypatch.setattr(Bench, "judge", judge)
    setting, pool = replace(tiny, seeds=3), pool_of(tiny)
    longer = replace(TINY, training={"epochs": 2})  # so that it can be stopped early
    with pytest.raises(InterruptedError):
        wang_comparing.compared(Pool(longer, pool.records), ["prune"], setting)
    shuffled = pool.records.take(np.random.default_rng(0).permutation(200))
    for records in (pool.records, shuffled):
        ground = ground_of(Pool(TINY, records), setting)
        assert ground.in_tables
        np.testing.assert_array_equal(ground.pool.records.X, seen[0].records.X)
        for one, other in zip(ground.divisions, seen[0].divisions, strict=True):
            np.testing.assert_array_equal(one.roles, other.roles)
            np.testing.assert_array_equal(one.evaluated, other.evaluated)


def test_the_models_are_those_of_the_tables(tiny: Setting, tmp_path: Path) -> None:
    """To the last bit, and so are what they gain and how accurate they are."""
    pool, setting = pool_of(tiny), replace(tiny, store=tmp_path)
    ground = ground_of(pool, setting)
    models = first_models(pool, ["prune"], setting)
    records, roles = ground.pool.records, ground.divisions[0].roles
    members, reference = (records.take(roles == role) for role in (MEMBER, REFERENCE))
    (found,) = search([ground], setting)
    first = found.alone[0]
    for one, model in zip((first.baseline, first.candidates[0]), models.values(), strict=True):
        assert one.gain == max(gain_of(model, members, reference), -math.log(4))
        assert one.accuracy == np.mean(model.predict(reference.X) == reference.y)


def test_the_spared_records_are_evaluated_nowhere(
    tiny: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second judgement of a model has none that any seed evaluates, and all others."""
    judged: list[tuple[set[bytes], set[bytes]]] = []

    def noted(model: Model, members: Records, reference: Records, seed: int = 0) -> float:
        judged.append((set(members.keys()), set(reference.keys())))
        return gain_of(model, members, reference, seed)

    monkeypatch.setattr(wang_grounds, "gain_of", noted)
    ground = ground_of(pool_of(tiny), tiny)
    (found,) = search([ground], tiny)
    keys = np.array(ground.pool.records.keys(), dtype=object)
    evaluated = {key for one in ground.divisions for key in keys[one.evaluated]}
    assert len(judged) == 2 * 2 * (1 + len(FEW))
    for number, division in enumerate(ground.divisions):
        sides = [set(keys[division.roles == role]) for role in (MEMBER, REFERENCE)]
        kept = [side - evaluated for side in sides]
        assert all(FEWEST <= len(some) < len(side) for some, side in zip(kept, sides, strict=True))
        start = number * 2 * (1 + len(FEW))
        assert judged[start] == tuple(sides)
        assert judged[start + 1] == tuple(kept)
        assert [ground.spared_as(role)[number] for role in (MEMBER, REFERENCE)] == [
            len(side) for side in kept
        ]
    assert len(found.spared) == len(found.alone) == 2
    assert [one.weights for one in found.spared[0].candidates] == [
        one.weights for one in found.alone[0].candidates
    ]


def test_nothing_is_spared_where_nothing_is_shared(tiny: Setting) -> None:
    """With one seed, on records apart, and where too few would be left."""
    pool = pool_of(tiny)
    assert not ground_of(pool, replace(tiny, seeds=1)).shared
    apart = Pool(replace(TINY, apart={**TINY.options, "seed": 1}), pool.records)
    beside = ground_of(apart, tiny)
    assert not beside.in_tables
    assert not beside.shared
    assert not beside.judged_spared
    assert [*beside.seeds] == [0, 1]
    many = ground_of(pool, replace(tiny, seeds=8))
    assert many.shared
    assert not many.judged_spared
    notes = list(notes_on(Found(many, [one_search(0.9, (-1.3, 0.9))], [])))
    assert notes[-1].endswith("too few to choose by them alone.")


def test_the_members_of_the_search_are_in_no_table(tmp_path: Path) -> None:
    """Test images choose, training images are judged."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (7300, 28, 28), np.uint8)
    np.savez(
        tmp_path / "mnist.npz", x_train=images[:7000], y_train=np.arange(7000) % 10,
        x_test=images[7000:], y_test=np.arange(300) % 10,
    )  # fmt: skip
    setting = Setting(data=tmp_path)
    apart, table = MNIST.load_apart(setting), MNIST.load(setting)
    assert apart is not None
    assert len(apart) == 300
    assert not set(apart.keys()) & set(table.keys())
    assert TINY.load_apart(setting) is None


def test_the_gain_is_that_of_margins() -> None:
    """It is nothing between records of the same kind, and much between fitted and other ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20)).astype(np.float32)
    records = Records(X, rng.integers(2, size=500))
    recipe = TorchRecipe("mlp", TINY.recipe.factory, epochs=60, lr=0.01)
    fitted, some, others = (
        records.take(np.arange(*ends)) for ends in ((60,), (60, 280), (280, 500))
    )
    model = recipe.fit(fitted, 0)
    assert gain_of(model, fitted, others) > -math.log(4) + 0.3
    assert gain_of(model, some, others) < -math.log(4) + 0.05


def one_search(plain: float, *others: tuple[float, float]) -> BudgetSearch:
    made = [Candidate(Pruning(ratio), 10, *one) for ratio, one in enumerate(others, 2)]
    return BudgetSearch(Candidate(None, 100, -1.0, plain), tuple(made), 0.01)


def test_means_over_seeds_decide() -> None:
    first = one_search(0.9, (-1.3, 0.9), (-1.1, 0.9))
    found = together([first, one_search(0.8, (-1.2, 0.8), (-1.38, 0.7))])
    assert found.baseline.accuracy == pytest.approx(0.85)
    assert [one.gain for one in found.candidates] == pytest.approx([-1.25, -1.24])
    assert found.allowed == found.candidates[:1]
    assert found.chosen is found.candidates[0]


@pytest.fixture
def ground(tiny: Setting) -> Ground:
    return ground_of(pool_of(tiny), tiny)


def test_notes_tell_what_each_seed_and_other_records_choose(ground: Ground) -> None:
    both = one_search(0.9, (-1.2, 0.9), (-1.3, 0.895))
    strict = one_search(0.9, (-1.2, 0.9), (-1.3, 0.8))
    notes = list(notes_on(Found(ground, [both, strict, both], [both, both, both])))
    assert "a gain of −1.0000 at an accuracy of 0.9000 on D′" in notes[0]
    assert "prune:2 is chosen: a gain of −1.2000 at an accuracy of 0.9000" in notes[1]
    assert "prune:3 would gain less (−1.3000), at an accuracy of 0.863" in notes[1]
    assert "which is another one" in notes[2]
    assert notes[3].endswith("would be chosen: prune:2 by seed 1; prune:3 by seed 0, 2.")
    left = int(ground.spared.sum())
    assert f"by the {left} of 200 records" in notes[5]
    assert "prune:3 is chosen: a gain of −1.3000 at an accuracy of 0.8950" in notes[5]
    assert "without a defense −1.0000 at an accuracy of 0.9000" in notes[5]
    same = list(notes_on(Found(ground, [both, both], [both, both])))
    assert "the same is chosen: a gain of −1.3000" in same[5]


def test_notes_tell_where_nothing_is_accurate_enough(ground: Ground) -> None:
    ruined = one_search(0.9, (-1.3, 0.5))
    notes = list(notes_on(Found(ground, [ruined, ruined], [ruined, ruined])))
    assert "none of 1 candidates is within 0.01" in notes[1]
    assert "would be chosen: none by seed 0, 1" in notes[2]
    assert "none is chosen; the undefended network has a gain of −1.0000" in notes[-1]
    reference = sum((one.roles == REFERENCE).sum() for one in ground.divisions)
    again = sum(
        (one.roles == REFERENCE)[other.evaluated].sum()
        for one, other in (ground.divisions, ground.divisions[::-1])
    )
    assert f"{again / reference:.0%} of D′ are among those of another seed" in notes[3]
