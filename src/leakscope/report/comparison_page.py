"""compare.html: defenses side by side as one page, made from the JSON alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakscope.report import comparison_plots, comparison_words, html


def render(comparison: Mapping[str, Any]) -> str:
    """The page as text: no script, no network, every string of the comparison escaped."""
    from markupsafe import Markup

    summaries, setup = comparison["summary"], comparison["setup"]
    environment = html.environment().overlay()
    environment.filters = environment.filters | {
        "size": comparison_words.size,
        "duration": comparison_words.duration,
        "points": comparison_words.points,
        "points_span": comparison_words.points_span,
        "standing": comparison_words.standing,
    }
    page = environment.get_template("comparison.html").render(
        told=comparison,
        comparison=comparison,
        setup=setup,
        summaries=summaries,
        facts=comparison_words.facts(setup),
        advice=comparison_words.first_sentence(comparison["advice"]),
        on_frontier=comparison_words.on_frontier(comparison),
        resolution=comparison_words.resolution(comparison),
        added=comparison_words.added(setup),
        not_run=comparison_words.not_run(comparison),
        # matplotlib's writer and ElementTree have escaped what came from data.
        wide=Markup(comparison_plots.frontier(summaries, "frontier-figure")),
        narrow=Markup(comparison_plots.frontier(summaries, "frontier-narrow", narrow=True)),
    )
    return page + "\n"
