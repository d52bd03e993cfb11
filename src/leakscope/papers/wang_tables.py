"""Tables 1, 2, 3, 5 and 6 of Wang et al. (2020): defenses side by side, with both baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from joblib import cpu_count

from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_parallel import each
from leakscope.papers.wang_comparing import NONE, Compared, compared
from leakscope.papers.wang_estimate import estimates
from leakscope.papers.wang_notes import BASELINES, between, kind_of, notes_on, reduced
from leakscope.papers.wang_printed import printed
from leakscope.papers.wang_setups import (
    CIFAR,
    CIFAR_CNN,
    EPSILON,
    IMAGENET,
    LOCATION,
    MNIST,
    PAPER,
    SEARCHED,
    Pool,
    pools,
    setup_of,
)
from leakscope.protocols import silent
from leakscope.registry import register

# The set-ups of a table by the scale.
Names = dict[Scale, Sequence[str]]

SMALL = (MNIST.name, LOCATION.name)
TABLE_1: Names = {"quick": SMALL, "full": (*SMALL, *(one.name for one in CIFAR))}
TABLE_2: Names = {"quick": (MNIST.name,), "full": (MNIST.name, CIFAR_CNN.name)}
TABLE_3: Names = dict.fromkeys(("quick", "full"), tuple(one.name for one in IMAGENET))
TABLE_5: Names = {"quick": SMALL, "full": (*SMALL, "CIFAR-10-VGG16", "CIFAR-100-VGG16")}
TABLE_6: Names = {"quick": (LOCATION.name,), "full": (*SMALL, "CIFAR-10-VGG16")}

JUDGED = (
    "every attack on the predictions, taught on the defended model itself; the headline is the "
    "strongest, and its interval allows for the choice; the paper has the inference network alone"
)


@register("experiment", "wang-table1", paper=f"{PAPER}, table 1")
def pruning_and_minmax(setting: Setting) -> Experiment:
    """Test and attack accuracy without defense, with pruning, and with the min-max game."""

    def claims(rows: Sequence[Row]) -> list[str]:
        return [
            f"Pruning leaks surely less than no defense in {reduced(rows, 'prune')}; min-max in "
            f"{reduced(rows, 'minmax')}.",
            *between(rows, "prune", "minmax"),
            "In print min-max leaks more than no defense on CIFAR-100 with VGG16 and ResNet-18, "
            "and less than pruning with MobileNetV2 on both data sets, where the text says that "
            "pruning is more effective.",
            "Pruning on MNIST has a test accuracy of 99.39 % in Table 1 and of 99.30 % in Table 2.",
        ]

    return _table("wang-table1", "table 1", TABLE_1, ("prune", "minmax"), setting, claims)


@register("experiment", "wang-table2", paper=f"{PAPER}, table 2")
def against_differential_privacy(setting: Setting) -> Experiment:
    """Pruning against differentially private training at ε = 6.28."""

    def claims(rows: Sequence[Row]) -> list[str]:
        private = [row for row in rows if kind_of(row) == "dpsgd"]
        return [
            *(
                f"{row['setup']}: DP-SGD spends ε = {row['epsilon']:.2f} of {EPSILON:g}, and "
                f"attacks on it are {'at' if row['low'] <= 0.5 else 'above'} chance "
                f"({row['low']:.3f} to {row['high']:.3f}) at a test accuracy of "
                f"{row['test_accuracy']:.3f}."
                for row in private
            ),
            *between(rows, "prune", "dpsgd"),
            "In print the private network on MNIST leaks more (78.54 %) than the undefended one of "
            "Table 1 (67.00 %).",
        ]

    return _table("wang-table2", "table 2", TABLE_2, ("dpsgd", "prune"), setting, claims)


@register("experiment", "wang-table3", paper=f"{PAPER}, table 3")
def imagenet(setting: Setting) -> Experiment:
    """Test and attack accuracy on ImageNet, without defense and with pruning."""

    def claims(rows: Sequence[Row]) -> list[str]:
        return [f"Pruning leaks surely less than no defense in {reduced(rows, 'prune')}."]

    return _table("wang-table3", "table 3", TABLE_3, ("prune",), setting, claims)


@register("experiment", "wang-table5", paper=f"{PAPER}, table 5")
def pruning_with_minmax(setting: Setting) -> Experiment:
    """Pruning alone against pruning within the min-max game."""

    def claims(rows: Sequence[Row]) -> list[str]:
        return [
            *between(rows, "prune+minmax", "prune"),
            "In print the two together leak more than pruning alone on MNIST (54.00 % and "
            "53.41 %), where the conclusion has them leak least; on CIFAR-10 the text has a "
            "difference of 3.03 points where the table has 4.35.",
        ]

    return _table("wang-table5", "table 5", TABLE_5, ("prune", "prune+minmax"), setting, claims)


@register("experiment", "wang-table6", paper=f"{PAPER}, table 6")
def training_and_test_accuracy(setting: Setting) -> Experiment:
    """Accuracy in training and on others beside attack accuracy, for all four ways to train."""
    kinds = ("prune", "minmax", "prune+minmax")

    def claims(rows: Sequence[Row]) -> list[str]:
        shown = [row for row in rows if not str(row["defense"]).startswith(BASELINES)]
        return [_by_gap(name, shown) for name in dict.fromkeys(str(row["setup"]) for row in rows)]

    return _table("wang-table6", "table 6", TABLE_6, kinds, setting, claims)


def _by_gap(setup: str, rows: Sequence[Row]) -> str:
    """Whether the gap between the accuracies orders the defenses as the attacks do."""
    own = sorted(
        (row for row in rows if row["setup"] == setup),
        key=lambda row: row["train_accuracy"] - row["test_accuracy"],
    )
    rising = all(one["attack_accuracy"] <= two["attack_accuracy"] for one, two in pairwise(own))
    told = ", ".join(
        f"{row['defense']} {row['train_accuracy'] - row['test_accuracy']:.3f} and "
        f"{row['attack_accuracy']:.3f}"
        for row in own
    )
    return (
        f"{setup}: attack accuracy {'rises' if rising else 'does not always rise'} with the gap "
        f"between the accuracies in training and on others ({told})."
    )


def _table(
    experiment: str,
    table: str,
    names: Names,
    kinds: Sequence[str],
    setting: Setting,
    claims: Callable[[Sequence[Row]], list[str]],
) -> Experiment:
    """Compare the defenses of these kinds in every set-up of a table whose data are there."""
    found, missing = pools(setting, names[setting.scale])
    expected = estimates(found, kinds, setting) if setting.scale == "full" else []
    done = _all(found, kinds, setting)
    rows = [row for one in done for row in one.rows]
    paper_rows = printed(experiment)
    later = [name for name in names["full"] if name not in names[setting.scale]]
    return Experiment(
        experiment=experiment,
        paper=f"{PAPER}, {table}",
        setup=setup_of(found, setting, judged=JUDGED, defenses=[NONE, *kinds]),
        rows=rows,
        paper_rows=paper_rows,
        notes=[
            *notes_on(done, paper_rows),
            *claims(rows),
            *_choices(found, kinds),
            *([f"With --scale full there are also: {', '.join(later)}."] if later else []),
            *missing,
            *expected,
        ],
    )


def _choices(found: Sequence[Pool], kinds: Sequence[str]) -> list[str]:
    """How the settings of a defense were chosen, where that was by a search."""
    return [
        f"{pool.setup.name}: the learning rates of {pool.setup.pruning} were chosen by Algorithm "
        f"1, for the least inference gain between members and D′ {_where(pool)}; see "
        "wang-algorithm1."
        for pool in found
        if pool.setup.name in SEARCHED and any("prune" in kind.split("+") for kind in kinds)
    ]


def _where(pool: Pool) -> str:
    """On which records the choice was made."""
    if pool.setup.apart is None:
        return (
            "of the tables at quick and seed 0, where D′ of one seed has non-members that others "
            "are evaluated on"
        )
    return "among records that are in no table"


def _all(found: Sequence[Pool], kinds: Sequence[str], setting: Setting) -> list[Compared]:
    """The comparison of each set-up; quick ones side by side.

    A comparison judges its models one after another, and only their training fills all cores.
    """
    if setting.scale == "quick" and min(setting.workers or cpu_count(), len(found)) > 1:
        alone = replace(setting, workers=1, progress=silent)
        tasks = [partial(compared, pool, kinds, alone) for pool in found]
        return each(tasks, setting, f"comparing {', '.join(one.setup.name for one in found)}")
    return [compared(pool, kinds, setting) for pool in found]
