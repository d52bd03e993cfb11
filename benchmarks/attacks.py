"""Attacks that compare a model with others like it, beside the loss threshold on the same model.

usage: python benchmarks/attacks.py [--shadows 64] [--data DIR] [--store DIR] [--write PAGE]

A target is trained on half of the records, shadow models on other halves of the same pool; every
attack scores the same records, and is compared with the loss threshold by the paired interval of
the difference. --store keeps the trained models; --write puts the table into the page.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import leakscope as ls
from leakscope.errors import MissingDataError
from leakscope.metrics import auc_difference, roc, tpr_difference
from leakscope.metrics.intervals import Interval
from leakscope.recipes import named_recipe, train
from leakscope.registry import entries

FPR = 0.05
SEED = 1  # the options of the attacks were chosen on the draws of seed 0
MARKS = ("<!-- benchmarks/attacks.py begins -->", "<!-- benchmarks/attacks.py ends -->")


@dataclass(frozen=True)
class Case:
    """A target: a recipe on a sample of a data set, half of which are members."""

    dataset: str
    recipe: str
    records: int


CASES = (
    Case("adult", "tree", 4000),
    Case("adult", "network", 4000),
    Case("adult", "forest", 4000),
    Case("location30", "network", 5010),
)


def measure(case: Case, shadows: int, data: Path | None, store: Path | None) -> list[list[str]]:
    """A row of the table for each attack."""
    records = ls.load_dataset(case.dataset, folder=data).sample(case.records, SEED)
    members, others = records.coin_split(SEED)
    recipe = named_recipe(case.recipe)
    report = ls.audit(
        train(recipe, members, SEED),
        members,
        others,
        recipe=recipe,
        shadows=shadows,
        seed=SEED,
        store=None if store is None else store / f"{case.dataset}-{case.recipe}",
        attacks=["loss", "confidence", *on_shadows()],
        progress=tell,
    )
    print()
    assert report.records is not None
    columns = {name: np.asarray(values) for name, values in report.records.columns.items()}
    membership = columns["side"] == "member"
    scores = {name[6:]: values for name, values in columns.items() if name.startswith("score_")}
    gap = report.to_dict()["target"]["gap"]["value"]
    rows = []
    for name, values in scores.items():
        found = roc(values, membership)
        rate = next(one for one in found.tpr_at_fpr if one.fpr == FPR)
        first = "" if rows else f"{case.dataset}, {case.recipe} (gap {gap:.2f})"
        row = [first, name, told(found.auc), told(Interval(rate.value, rate.low, rate.high))]
        if name == "loss":
            row += ["", ""]
        else:
            loss = scores["loss"]
            row += [
                signed(auc_difference(values, loss, membership)),
                signed(tpr_difference(values, loss, membership, FPR)),
            ]
        rows.append(row)
    return rows


def tell(step: str, done: int, total: int) -> None:
    """One line that is written over and over."""
    print(f"\r  {step} ({done} of {total})", end="\033[K", flush=True)


def on_shadows() -> list[str]:
    """The attacks that need shadow models, but for those that run on request."""
    return [one.name for one in entries("attack") if one.thing.shadows and not one.thing.on_request]


def told(interval: Interval) -> str:
    """An estimate and its interval."""
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def signed(interval: Interval) -> str:
    """A difference; bold where its interval excludes 0."""
    text = f"{interval.value:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})".replace("-", "−")
    return f"**{text}**" if interval.low > 0 or interval.high < 0 else text


def table(rows: list[list[str]]) -> str:
    """The rows as Markdown."""
    head = [
        "target",
        "attack",
        "AUC",
        "TPR at 5 % FPR",
        "AUC minus that of loss",
        "TPR minus that of loss",
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(text: str, page: Path) -> None:
    """Put the table between its marks in the page."""
    before, _, rest = page.read_text("utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", "utf-8")


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--data", type=Path, help="folder of data files, for location30")
    parser.add_argument("--store", type=Path, help="keep trained models here")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    asked = parser.parse_args()
    rows = []
    for case in CASES:
        print(f"{case.dataset}, {case.recipe}", flush=True)
        try:
            rows += measure(case, asked.shadows, asked.data, asked.store)
        except MissingDataError as error:
            print(f"left out: {error}")
    text = table(rows)
    print(text)
    if asked.write is not None:
        write(text, asked.write)


if __name__ == "__main__":
    main()
