"""Figures 1, 3, 4 and 5 of Farokhi & Kaafar (2020), section 6.3: ridge regression on Adult.

The figures have boxes of the adversary's advantage on the left axis and the leakage on the right
one. No numbers are printed in the paper, so that there are trends to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.farokhi_notes import bounds, figure, plateau, rounding, trend
from leakscope.papers.farokhi_ridge import (
    SIZES,
    Adults,
    Case,
    Point,
    large_sample_mean,
    leakage_of,
    measure,
    repeated_advantages,
    repetitions,
)
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "Farokhi & Kaafar 2020"
ADVERSARY = (
    "calls a member whoever the released model fits, by squared error, at least as well as its "
    "members on average (Yeom et al. 2018, section 6.2); judged on the n members and n others"
)

SIZES_SWEPT = (10, 30, 100, 1000, 3000)
PENALTIES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
FEATURES = tuple(range(1, 15))
SIGMAS = (0.0, 10.0, 30.0, 100.0)

# Parameters are tens to hundreds without a penalty: this is a release of whole numbers.
GRID = 1.0


@dataclass(frozen=True)
class Sweep:
    """One figure: its cases, what differs between them, and which way the paper says things go.

    reference: values of ρ_KL by swept value that others measured for this set-up, on a sample of
    records that is not known; they are not the paper's, and not all are met here.
    """

    name: str
    over: str
    cases: Mapping[float, Case]
    label: str
    rises: bool
    reference: Mapping[float, float]


def _run(sweep: Sweep, setting: Setting) -> tuple[Adults, list[Point]]:
    setting.progress("reading the data set adult", 0, 0)
    adults = Adults.load(setting)
    points = list[Point]()
    for at, (value, case) in enumerate(sweep.cases.items()):
        setting.progress(f"measuring at {sweep.over} = {value:g}", at, len(sweep.cases))
        point = measure(adults, case, setting)
        points.append(Point({sweep.over: value, **point.row}, point.advantages))
    return adults, points


def _experiment(
    sweep: Sweep,
    setting: Setting,
    adults: Adults,
    points: Sequence[Point],
    notes: Sequence[str],
    more: Mapping[str, Any] | None = None,
) -> Experiment:
    """The rows with their set-up, the claims of the paper, and the notes that all figures have."""
    rows = [point.row for point in points]
    way = "rises" if sweep.rises else "falls"
    number = sweep.name[-1]
    return Experiment(
        experiment=sweep.name,
        paper=f"{PAPER}, figure {number}",
        setup=_setup(sweep, setting, adults) | dict(more or {}),
        rows=rows,
        paper_rows=[
            {
                "over": sweep.over,
                "rho_kl": way,
                "advantage": way,
                "source": f"section 6.3 on figure {number}: the trend, no number is printed",
            }
        ],
        notes=[*notes, *bounds(rows, sweep.over), *_remarks(setting, adults)],
        draw=partial(_draw, sweep, points),
    )


def _setup(sweep: Sweep, setting: Setting, adults: Adults) -> dict[str, Any]:
    size, times = SIZES[setting.scale], repetitions(setting)
    fixed = {
        key: values[0]
        for key in ("n", "features", "l2", "sigma")
        if len(values := list({getattr(case, key) for case in sweep.cases.values()})) == 1
    }
    return {
        "model": "ridge regression without an intercept, λ‖θ‖² beside the mean squared error",
        "dataset": "adult: categories as integers, standardized, principal components of norm 1",
        "population": len(adults.y),
        "records": len(adults.asked),
        "draws": size.draws * times,
        "models": size.models * times,
        "adversary": ADVERSARY,
        **fixed,
        "scale": setting.scale,
        "seed": setting.seed,
        "seeds": times,
        "reference_measured": {
            "what": "ρ_KL measured by others for this set-up, on a sample of records that is not "
            "known; not the paper's",
            "rho_kl": {f"{value:g}": rho for value, rho in sweep.reference.items()},
        },
    }


def _remarks(setting: Setting, adults: Adults) -> list[str]:
    """What has to be known to read the figures."""
    remarks = [
        "ρ_KL is that of Gaussians fitted to the models with and without a record: in a finite "
        "population and without noise the exact divergence is infinite, and the fit smooths it.",
        "The absolute value of the advantage is above 0 also where nothing leaks, the more the "
        "fewer records judge a model: see the mean with its sign.",
    ]
    if len(adults.asked) < len(adults.y):
        remarks.append(
            f"Averages are over {len(adults.asked):,} of {len(adults.y):,} records, drawn with "
            f"seed {setting.seed}; the interval of ρ_KL counts that."
        )
    return remarks


def _draw(sweep: Sweep, points: Sequence[Point]) -> Figure:
    from leakscope.papers.drawing import Line, boxes_and_lines

    rows = [point.row for point in points]

    def line(name: str, key: str, dashed: bool = False) -> Line:
        values, low, high = ([row[key + end] for row in rows] for end in ("", "_low", "_high"))
        return Line(name, values, low, high, dashed)

    lines = [line("ρ_KL", "rho_kl")]
    if "rho_kl_rounded" in rows[0]:
        lines.append(line(f"rounded to multiples of {GRID:g}", "rho_kl_rounded", dashed=True))
    ticks = [f"{row[sweep.over]:g}" for row in rows]
    return boxes_and_lines(ticks, [point.advantages for point in points], lines, sweep.label)


def _trends(sweep: Sweep, rows: Sequence[Row]) -> list[str]:
    keys = ("rho_kl", "advantage_median", "advantage_signed")
    return [trend(rows, sweep.over, key, rises=sweep.rises) for key in keys]


@register("experiment", "farokhi-fig1", paper=f"{PAPER}, figure 1")
def ridge_by_size(setting: Setting) -> Experiment:
    """Leakage and advantage of linear regression by the number of training records."""
    sweep = Sweep(
        "farokhi-fig1",
        "n",
        {n: Case(n) for n in SIZES_SWEPT},
        "size of the training set n",
        rises=False,
        reference={10: 4.09, 30: 0.324, 100: 0.0592, 1000: 0.00493, 3000: 0.00171},
    )
    adults, points = _run(sweep, setting)
    points = [
        Point(
            {**point.row, "rho_kl_large_n": large_sample_mean(adults, case)},
            point.advantages,
        )
        for point, case in zip(points, sweep.cases.values(), strict=True)
    ]
    rows = [point.row for point in points]
    ratios = ", ".join(
        f"{figure(row['rho_kl'] / row['rho_kl_large_n'])} at n = {row['n']}" for row in rows
    )
    law = (
        "For large n the mean of ρ_KL is p/n: ρ_KL over what that law gives for these records is "
        f"{ratios}."
    )
    return _experiment(sweep, setting, adults, points, [*_trends(sweep, rows), law])


@register("experiment", "farokhi-fig3", paper=f"{PAPER}, figure 3")
def ridge_by_penalty(setting: Setting) -> Experiment:
    """Leakage and advantage of ridge regression by its penalty λ, exact and rounded."""
    sweep = Sweep(
        "farokhi-fig3",
        "l2",
        {l2: Case(10, l2=l2) for l2 in PENALTIES},
        "regularization weight λ",
        rises=False,
        reference={0: 4.13, 100: 0.588},
    )
    adults, exact = _run(sweep, setting)
    points = list[Point]()
    for at, (point, case) in enumerate(zip(exact, sweep.cases.values(), strict=True)):
        setting.progress(f"rounding at l2 = {case.l2:g}", at, len(exact))
        points.append(Point({**point.row, **_rounded(adults, case, setting)}, point.advantages))
    rows = [point.row for point in points]
    notes = [*_trends(sweep, rows), plateau(rows, "l2"), rounding(rows, "l2")]
    return _experiment(sweep, setting, adults, points, notes, {"grid": GRID})


def _rounded(adults: Adults, case: Case, setting: Setting) -> dict[str, float]:
    """The same case where the parameters are released as multiples of GRID."""
    released = Case(case.n, case.features, case.l2, case.sigma, GRID)
    mean = leakage_of(adults, released, setting).population_mean
    return {
        "grid": GRID,
        "rho_kl_rounded": mean.value,
        "rho_kl_rounded_low": mean.low,
        "rho_kl_rounded_high": mean.high,
        "advantage_signed_rounded": float(repeated_advantages(adults, released, setting).mean()),
    }


@register("experiment", "farokhi-fig4", paper=f"{PAPER}, figure 4")
def ridge_by_features(setting: Setting) -> Experiment:
    """Leakage and advantage of ridge regression by the number of features."""
    sweep = Sweep(
        "farokhi-fig4",
        "features",
        {features: Case(10, features, l2=1e-6) for features in FEATURES},
        "number of features p",
        rises=True,
        reference={1: 0.115, 14: 82.9},
    )
    adults, points = _run(sweep, setting)
    rows = [point.row for point in points]
    return _experiment(sweep, setting, adults, points, _trends(sweep, rows))


@register("experiment", "farokhi-fig5", paper=f"{PAPER}, figure 5")
def ridge_by_noise(setting: Setting) -> Experiment:
    """Leakage and advantage of linear regression by the noise added to its parameters."""
    sweep = Sweep(
        "farokhi-fig5",
        "sigma",
        {sigma: Case(30, sigma=sigma) for sigma in SIGMAS},
        "standard deviation of the noise σ",
        rises=False,
        reference={0: 0.321, 10: 0.203, 30: 0.052, 100: 0.0055},
    )
    adults, points = _run(sweep, setting)
    rows = [point.row for point in points]
    return _experiment(sweep, setting, adults, points, _trends(sweep, rows))
