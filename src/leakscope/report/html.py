"""report.html: the report as one page that a privacy officer can read, made from the JSON alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from leakscope.report import (
    additions,
    advice,
    disclosure_plots,
    disclosures,
    findings,
    information,
    plots,
    redaction,
    words,
)

if TYPE_CHECKING:
    from jinja2 import Environment

# A forest plot with more lines than this is no longer a picture; the table has them all.
MOST_ROWS = 30


def render(report: Mapping[str, Any]) -> str:
    """The page as text: no script, no network, every string of the report escaped."""
    strongest, low = words.headline_outcome(report), words.low_fpr_outcome(report)
    return (
        environment()
        .get_template("report.html")
        .render(
            told=report,
            report=report,
            verdict=report["verdict"],
            target=report["target"],
            badge=words.badge(report["verdict"]),
            tone=words.tone(report["verdict"]),
            meaning=advice.meaning(report),
            steps=advice.next_steps(report),
            strongest=strongest,
            opening=advice.opening(report, strongest),
            findings=findings.achievements(report) if strongest else [],
            dots=findings.dots(report, strongest),
            failed=advice.other_failures(report),
            hit_harder=findings.hit_harder(strongest) if strongest else "",
            exposed_few=findings.exposed_few(low) if low else "",
            groups=_by_column(strongest["groups"]) if strongest else [],
            redacted=redaction.in_words(report),
            withheld=_withheld(report),
            controls=[advice.control(one) for one in report["controls"]],
            facts=findings.facts(report),
            not_run=words.by_reason(report["not_run"]),
            addition_words=additions.in_words(report["additions"]),
            **_brought_back(report),
            leakage=[_measure(one) for one in report["leakage"]],
            leakage_words=information.in_words(report["leakage"]),
            leakage_groups=_by_column(report["leakage"][0]["groups"]) if report["leakage"] else [],
            figures=_figures(report, strongest),
        )
        + "\n"
    )


def _figures(report: Mapping[str, Any], strongest: Mapping[str, Any] | None) -> dict[str, Any]:
    """The figures there is something to draw for, as markup that is safe to insert."""
    from markupsafe import Markup

    drawn = _leakage_figures(report["leakage"]) | _disclosure_figures(report["disclosures"])
    drawn |= _addition_figures(report)
    if strongest is not None:
        drawn |= _attack_figures(report, strongest)
    # matplotlib's writer and ElementTree have escaped what came from data.
    return {name: Markup(svg) for name, svg in drawn.items()}


def _brought_back(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the page says of extractions."""
    told = disclosures.revealed(report["disclosures"])
    sizes, exposed = ([], []) if told is None else disclosures.by_size(told)
    shown = [one for one in report["outcomes"] if one["attack"] == "shown" and one["groups"]]
    return {
        "disclosure_words": disclosures.in_words(report["disclosures"]),
        "sizes": sizes,
        "exposed": exposed,
        "by_itself": disclosures.BY_ITSELF,
        "exposed_more": findings.hit_harder(shown[0]) if shown else "",
    }


def _addition_figures(report: Mapping[str, Any]) -> dict[str, str]:
    """How much each explanation adds, for a page and for a phone."""
    added = report["additions"]
    if not added:
        return {}
    rows = [plots.Row(additions.title(one), one["increase"], one is added[0]) for one in added]
    scale = plots.Scale("increase in advantage", "as much as predictions alone")
    return _forests(rows[:MOST_ROWS], scale, "additions", "Increase in advantage by explanation")


def _disclosure_figures(told: list[Any]) -> dict[str, str]:
    """How soon records are shown and who is shown, for a page and for a phone."""
    drawn, one = {}, disclosures.revealed(told)
    # Who is asked about by somebody who has their record already is another matter.
    readers = [other for other in told if other is not one]
    if readers:
        drawn["reading"] = disclosure_plots.reading(readers, "reading-figure")
        drawn["reading_narrow"] = disclosure_plots.reading(readers, "reading-narrow", narrow=True)
    if one is None:
        return drawn
    k = disclosures.at_usual(one["groups"])["k"]
    rows = _exposed_rows(
        [share for share in one["groups"] if share["k"] == k], disclosures.of_others(one).get(k)
    )
    if len(rows) <= MOST_ROWS:
        drawn["exposed"] = disclosure_plots.exposed(rows, k, "exposed-figure")
        drawn["exposed_narrow"] = disclosure_plots.exposed(rows, k, "exposed-narrow", narrow=True)
    return drawn


def _exposed_rows(shares: list[Any], others: Any) -> list[plots.Row]:
    """Everyone, the non-members, and then the groups, each column's name above its values."""
    everyone, *groups = shares
    rows = [plots.Row(everyone["value"], everyone["share"], strong=True)]
    if others is not None:
        rows.append(plots.Row(disclosures.NONMEMBERS, others["share"]))
    for column, values in _by_column(groups):
        rows.append(plots.Row(column))
        rows += [plots.Row(one["value"], one["share"]) for one in values]
    return rows


def _leakage_figures(leakage: list[Any]) -> dict[str, str]:
    """What leaks and what the best attack achieves, for a page and for a phone."""
    if not leakage:
        return {}
    rows = [_in_the_figure(one) for one in leakage]
    best = leakage[0]["best_attack"]
    return {
        "leakage": plots.leakage(rows, best, "leakage-figure"),
        "leakage_narrow": plots.leakage(rows, best, "leakage-narrow", narrow=True),
    }


def _in_the_figure(entry: Mapping[str, Any]) -> plots.Allowed:
    """The advantage that a measure allows, or is."""
    if information.reached(entry):
        return plots.Allowed(f"reached: {information.name(entry)}", entry, entry["null"]["high"])
    label = f"allowed by: {information.name(entry)}"
    return plots.Allowed(label, information.bound(entry), entry["null_bound"])


def _measure(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One measure as the table shows it."""
    return {
        "name": information.name(entry),
        "note": entry["note"],
        "value": information.amount(entry, entry["value"]),
        "interval": words.span(entry),
        "chance": entry["null"]["mean"],
        "p_value": entry["null"]["p_value"],
        "bound": None if entry["bound"] is None else information.bound(entry),
        "no_bound": "reached, no limit" if information.reached(entry) else "none: too little",
    }


def _attack_figures(report: Mapping[str, Any], strongest: Mapping[str, Any]) -> dict[str, str]:
    outcomes, scale = report["outcomes"], plots.Scale.of_advantages(report["verdict"]["limit"])
    drawn = _forests(_attack_rows(outcomes, strongest), scale, "attacks", "Advantage by attack")
    if strongest["curve"]["fpr"]:
        drawn["roc"] = plots.roc(outcomes, strongest, report["target"]["nonmembers"])
    if strongest["histogram"]["members"]:
        drawn["histogram"] = plots.histogram(strongest)
    rows = _group_rows(strongest["groups"])
    if 0 < len(rows) <= MOST_ROWS:
        drawn |= _forests(rows, scale, "groups", "Advantage by group")
    return drawn


def _forests(rows: list[plots.Row], scale: plots.Scale, name: str, subject: str) -> dict[str, str]:
    """A forest plot for a page and one for a phone; the style sheet shows one of the two."""
    return {
        name: plots.forest(rows, scale, f"{name}-figure", subject),
        f"{name}_narrow": plots.forest(rows, scale, f"{name}-narrow", subject, narrow=True),
    }


def _attack_rows(outcomes: list[Any], strongest: Mapping[str, Any]) -> list[plots.Row]:
    """The attacks, strongest first."""
    rows = [plots.Row(one["attack"], one["advantage"], one is strongest) for one in outcomes]
    return sorted(rows, key=lambda row: -_known(row.interval))[:MOST_ROWS]


def _known(interval: Mapping[str, Any] | None) -> float:
    return -2.0 if interval is None or interval["value"] is None else float(interval["value"])


def _by_column(groups: list[Any]) -> list[tuple[str, list[Any]]]:
    """The groups under the name of their column, in the order of the report."""
    columns: dict[str, list[Any]] = {}
    for one in groups:
        columns.setdefault(one["group"], []).append(one)
    return list(columns.items())


def _withheld(report: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The columns of which a redacted report shows not all values, and how many it does not."""
    told = report.get("redacted") or {"withheld": []}
    return [(one["group"], one["values"]) for one in told["withheld"]]


def _group_rows(groups: list[Any]) -> list[plots.Row]:
    """The groups, each column's name above its values."""
    rows: list[plots.Row] = []
    for column, values in _by_column(groups):
        rows.append(plots.Row(column))
        rows += [
            plots.Row(one["value"], one["advantage"], findings.is_hit_harder(one)) for one in values
        ]
    return rows


@cache
def environment() -> Environment:
    """The templates of the package, with everything escaped and numbers as readers want them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("leakscope", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for use in (
        words.count,
        words.figure,
        words.moment,
        words.number,
        words.one_in,
        words.p_value,
        words.percent,
        words.percent_span,
        words.span,
    ):
        environment.filters[use.__name__] = use
    environment.filters["extraction"] = disclosures.label
    environment.filters["explanation"] = additions.title
    return environment


def _shown(value: Any) -> Any:
    """What an expression of the template puts on the page: never None, no unprintable character."""
    if value is None:
        return words.UNKNOWN
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return words.clean(value)
    return value
