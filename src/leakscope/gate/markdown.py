"""A summary in GitHub's Markdown: for a job's page, or a comment on a pull request."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from leakscope.gate.words import HEADINGS, MARKS, cells
from leakscope.report.words import by_reason, clean

if TYPE_CHECKING:
    from leakscope.gate.result import Check

# What Markdown would act on, mentions, short names of emoji and bare addresses included; < > and &
# become entities.
_ACTIVE = re.compile(r"([\\`*_{}\[\]#|~@]|:(?=\S)|(?<=www)\.|^[-+=])")


def markdown(check: Check) -> str:
    """The text of the summary; nothing the report holds can format or link."""
    lines = [
        f"### {MARKS[check.decision]} Privacy gate",
        "",
        plain(check.sentence),
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{'---|' * len(HEADINGS)}",
    ]
    lines += [f"| {' | '.join(map(plain, row))} |" for row in map(cells, check.limits)]
    for remark in check.remarks:
        lines += ["", plain(remark)]
    skipped = by_reason(check.skipped)
    if skipped:
        # Folded: it is long, and the same in every build.
        lines += ["", "<details><summary>Not run</summary>", ""]
        lines += [f"- {plain(names)}: {plain(reason)}" for names, reason in skipped]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """The text on one line as Markdown shows it and does not read it."""
    line = " ".join(clean(text).split())
    return _ACTIVE.sub(r"\\\1", html.escape(line, quote=False))
