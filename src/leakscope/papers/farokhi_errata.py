"""What is wrong in print in Farokhi & Kaafar 2020, each with a number that shows it.

Two versions are cited: v1, and v2 of April 2020, which projects the model onto a finite set and
replaces the proofs of Theorems 2 and 3. docs/errata.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable

from leakscope.papers import farokhi_errata_densities as densities
from leakscope.papers import farokhi_errata_universes as universes
from leakscope.papers.experiment import Experiment, Setting
from leakscope.papers.farokhi_errata_row import Erratum
from leakscope.registry import register

PAPER = "Farokhi & Kaafar 2020"

# By number.
ERRATA: tuple[Callable[[], Erratum], ...] = (
    densities.trace,
    universes.swapped_prior,
    densities.success,
    densities.small_noise,
    densities.private_noise,
    universes.neighbours,
    densities.differential_entropy,
    universes.regularization,
    universes.growing_sets,
    universes.disjoint_supports,
    densities.order_of_infinity,
)


@register("experiment", "farokhi-errata", paper=PAPER)
def list_errata(setting: Setting) -> Experiment:
    """What is wrong in print: eleven statements, their corrections, and the truth in an example."""
    found: list[Erratum] = []
    for number, erratum in enumerate(ERRATA):
        setting.progress("errata", number, len(ERRATA))
        found.append(erratum())
    setting.progress("errata", len(ERRATA), len(ERRATA))
    rows = [erratum.to_row(number) for number, erratum in enumerate(found, start=1)]
    in_print = ("erratum", "where", "quantity", "printed", "printed_value")
    return Experiment(
        experiment="farokhi-errata",
        paper=PAPER,
        setup={
            "errata": len(rows),
            "truth": "counted over all training sets, or integrated numerically; nothing is drawn "
            "at random, so that neither the scale nor the seed changes a number",
        },
        rows=rows,
        paper_rows=[{key: row[key] for key in in_print} for row in rows],
        notes=_notes(found),
    )


def _notes(found: list[Erratum]) -> list[str]:
    """What the rows come to."""
    numbered = list(enumerate(found, start=1))
    wrong = [number for number, erratum in numbered if not erratum.holds]
    mended = [number for number, erratum in numbered if erratum.right_holds]
    return [
        f"As printed, {len(wrong)} of {len(found)} statements fail in their examples: "
        f"{_listed(wrong)}.",
        f"As corrected, {len(mended)} of {len(found)} hold there: {_listed(mended)}.",
        "Where the relation is 'at most', the statements bound the quantity from above.",
    ]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
