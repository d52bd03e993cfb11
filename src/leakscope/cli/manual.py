"""The end of each command's help, as in a manual page: examples, files and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALWAYS = "0 finished; 2 an error, told in one sentence on stderr; 130 interrupted"


@dataclass(frozen=True)
class Manual:
    """What is told of a command after its options.

    files: what it writes, or reads by itself. codes: what its exit codes mean.
    """

    examples: Sequence[str]
    files: str = "none"
    codes: str = ALWAYS

    def text(self) -> str:
        """The sections, in the markup of rich; typer shows each paragraph on a line of its own."""
        lines = [
            "[bold]Examples:[/bold]",
            *(f"[dim]$[/dim] {example}" for example in self.examples),
            f"[bold]Files:[/bold] {self.files}",
            f"[bold]Exit codes:[/bold] {self.codes}",
        ]
        return "\n\n".join(lines)


PAGES = {
    "audit": Manual(
        (
            "leakscope audit",
            "leakscope audit --dataset digits --recipe nearest",
            "leakscope audit --members a.csv --nonmembers b.csv --label y --recipe forest",
            "leakscope audit --members a.csv --nonmembers b.csv --label y --model m.skops",
            "leakscope audit --members a.csv --nonmembers b.csv --label y --model xgb.json",
            "leakscope audit --member-predictions a.csv --nonmember-predictions b.csv",
        ),
        "in --out report.html, report.json (its schema is in the package), records.csv (who was a "
        "member, so guard it) and trials/ (shadow models, found again by the next run)",
        "0 finished, whatever the verdict; 2 an error; 130 interrupted",
    ),
    "compare": Manual(
        (
            "leakscope compare --defenses l2:0.01,noise:0.1",
            "leakscope compare --table all.csv --label y --recipe logistic --defenses l2:0.1",
            "leakscope compare --recipe mine:net --defenses early-stop:12,prune:16+minmax:0.3",
        ),
        "in --out compare.html, compare.json, compare.csv and trials/",
    ),
    "check": Manual(
        (
            "leakscope check leakscope-report --max-advantage 0.1 --max-tpr 0.02@0.01",
            "leakscope check report.json --baseline old.json --junit gate.xml",
        ),
        "what --junit and --summary name",
        "0 every limit holds; 1 one is violated; 3 the records cannot decide; 2 an error",
    ),
    "record": Manual(
        ("leakscope record leakscope-report --row 17",), "reads report.json and records.csv"
    ),
    "reproduce": Manual(
        (
            "leakscope reproduce --list",
            "leakscope reproduce farokhi-fig1",
            "leakscope reproduce farokhi-fig3 --scale full --out figures",
        ),
        "in --out ID.json, ID.csv and, where there is a picture, ID.svg; trials/ for models",
    ),
    **{
        listing: Manual((f"leakscope {listing}", f"leakscope {listing} --json"))
        for listing in ("datasets", "attacks", "extractions", "channels", "defenses", "recipes")
    },
}

# Of leakscope itself.
TOP = Manual(
    (
        "leakscope audit",
        "leakscope check leakscope-report --max-advantage 0.1",
        "leakscope --install-completion",
    ),
    "$LEAKSCOPE_DATA names a folder with data files in their usual names",
)
