"""Mutants: all that cosmic-ray's operators make of the source, and a random sample of them.

Not counted, and never drawn, is a mutant that changes no behaviour: one whose syntax tree is that
of the source, once annotations, docstrings, ``if TYPE_CHECKING`` and ``@overload`` are taken away.
Nor is one that Python does not take, nor one that puts an operator on bits in the place of
arithmetic, which raises at once on floats: many would be killed for nothing.
"""

from __future__ import annotations

import ast
import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/leakscope"
PACKAGES = ("metrics", "leakage", "exact", "attacks")

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow", "USub", "UAdd")
BITS = ("BitAnd", "BitOr", "BitXor", "LShift", "RShift", "Invert")


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the occurrence of an operator of cosmic-ray, and where that is."""

    file: str  # from src/leakscope
    operator: str
    occurrence: int
    line: int

    @property
    def key(self) -> str:
        """What names it in the results."""
        return f"{self.file}:{self.line} {self.operator} {self.occurrence}"

    def original(self) -> str:
        """The whole file without the change."""
        return (SOURCE / self.file).read_text("utf-8")

    def source(self) -> str:
        """The whole file with the change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        return mutate_code(self.original(), get_operator(self.operator)(), self.occurrence)


class Behaviour(ast.NodeTransformer):
    """Takes away what a program does without."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if any(ast.unparse(one).endswith("overload") for one in node.decorator_list):
            return None
        node.returns = None
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def behaviour(source: str) -> str | None:
    """The syntax tree of what a source does, as text; None if Python does not take the source."""
    try:
        return ast.dump(Behaviour().visit(ast.parse(source)))
    except SyntaxError:
        return None


def every_mutant(file: str) -> Iterator[Mutant]:
    """All that cosmic-ray's operators make of one file, in a fixed order."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast((SOURCE / file).read_text("utf-8"))))
    for name in sorted(operator_names()):
        *_, old, new = f"_{name}".split("_")
        if old in ARITHMETIC and new in BITS:
            continue
        with contextlib.suppress(TypeError):  # the few operators that need arguments
            operator = get_operator(name)()
            places = (place for node in nodes for place in operator.mutation_positions(node))
            for i, (start, _) in enumerate(places):
                yield Mutant(file, name, i, start[0])


def sampled(size: int, seed: int) -> tuple[list[Mutant], int, int]:
    """A random sample of those that count, of how many in all, and how many were passed over.

    One that does not count is passed over when it is drawn, which leaves a uniform sample of those
    that do.
    """
    paths = [path for package in PACKAGES for path in sorted((SOURCE / package).glob("*.py"))]
    mutants = [one for path in paths for one in every_mutant(str(path.relative_to(SOURCE)))]
    random.Random(seed).shuffle(mutants)
    drawn: list[Mutant] = []
    for place, mutant in enumerate(mutants):
        if len(drawn) == size:
            return drawn, len(mutants), place - size
        if behaviour(mutant.source()) not in (None, behaviour(mutant.original())):
            drawn.append(mutant)
    return drawn, len(mutants), len(mutants) - len(drawn)
