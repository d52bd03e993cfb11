"""The contracts of import-linter say exactly what the table of docs/architecture.md says.

`make test` runs the contracts on the code. Here they are run on every import one could add: for
each pair of packages a graph with that single import, which must be kept or broken as the table
has it, whether or not the packages have been written yet.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.domain.contract import Contract

ROOT = Path(__file__).resolve().parent.parent
KINDS: dict[str, type[Contract]] = {"layers": LayersContract, "forbidden": ForbiddenContract}

LOWEST = {"errors", "scrubbing", "temporary"}
BASE = LOWEST | {"options", "protocols", "registry"}
LEAVES = BASE | {"probabilities"}
MACHINERY = LEAVES | {
    "attacks", "channels", "datasets", "defenses", "evidence", "exact", "extractions", "leakage",
    "metrics", "models", "networks", "recipes", "records", "trials",
}  # fmt: skip
PARTS = MACHINERY | {"controls", "report"}
FACADES = {"auditing", "comparing", "gate"}

MAY_IMPORT = {
    "errors": set(),
    "scrubbing": set(),
    "temporary": set(),
    "options": LOWEST,
    "protocols": LOWEST | {"options"},
    "registry": LOWEST | {"options", "protocols"},
    "probabilities": BASE,
    "evidence": BASE,
    "records": BASE,
    "networks": BASE,
    "metrics": LEAVES | {"evidence"},
    "leakage": LEAVES | {"records", "metrics"},
    "exact": LEAVES | {"records", "metrics"},
    "datasets": LEAVES | {"records", "networks"},
    "models": LEAVES | {"records", "networks"},
    "recipes": LEAVES | {"records", "networks", "models"},
    "channels": LEAVES | {"records", "models", "exact"},
    "trials": LEAVES | {"records", "models", "recipes", "channels", "evidence"},
    "attacks": LEAVES | {"evidence", "metrics", "leakage"},
    "extractions": LEAVES | {"records", "metrics"},
    "defenses": LEAVES | {"records", "models", "recipes", "channels", "networks", "leakage"},
    "report": LOWEST | {"metrics"},
    "controls": MACHINERY,
    "auditing": PARTS,
    "comparing": PARTS | {"auditing"},
    "gate": PARTS | {"auditing"},
    "papers": PARTS | FACADES,
    "testing": PARTS | FACADES,
    "cli": PARTS | FACADES | {"papers", "testing"},
    "__main__": PARTS | FACADES | {"papers", "testing", "cli"},
}


@pytest.fixture(scope="module")
def contracts() -> list[Contract]:
    configuration = read_configuration(str(ROOT / "pyproject.toml"))
    return [
        KINDS[options["type"]](options["name"], configuration["session_options"], options)
        for options in configuration["contracts_options"]
    ]


def broken(contracts: list[Contract], importer: str, imported: str) -> list[str]:
    """The contracts that this one import breaks in a tree that has every package."""
    graph = grimp.ImportGraph()
    for package in ("leakscope", *(f"leakscope.{name}" for name in MAY_IMPORT)):
        graph.add_module(package)
    graph.add_module(importer)
    graph.add_module(imported, is_squashed=not imported.startswith("leakscope"))
    graph.add_import(importer=importer, imported=imported, line_number=1, line_contents="import")
    return [
        contract.name for contract in contracts if not contract.check(graph, verbose=False).kept
    ]


@pytest.mark.slow
@pytest.mark.parametrize("importer", MAY_IMPORT)
def test_a_package_may_import_what_the_table_says_and_nothing_else(
    contracts: list[Contract], importer: str
) -> None:
    kept = {
        imported
        for package, imported in permutations(MAY_IMPORT, 2)
        if package == importer
        and not broken(contracts, f"leakscope.{importer}.inner", f"leakscope.{imported}.inner")
    }
    assert kept == MAY_IMPORT[importer]


def test_a_module_without_a_place_in_the_table_is_found(contracts: list[Contract]) -> None:
    assert broken(contracts, "leakscope.helpers", "leakscope.errors") == ["Imports point downwards"]


@pytest.mark.parametrize("extra", ["captum", "dask", "distributed", "opacus", "ray", "torch"])
def test_the_core_imports_no_extra(contracts: list[Contract], extra: str) -> None:
    core = set(MAY_IMPORT) - {"networks"}
    assert {name for name in core if broken(contracts, f"leakscope.{name}", extra)} == core


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("networks.mlp", "torch"),
        ("models.torch", "torch"),
        ("recipes.torch", "torch"),
        ("recipes.stacked", "torch"),
        ("channels.explanations", "captum"),
        ("attacks.network", "torch"),
        ("attacks.network", "leakscope.networks"),
        ("attacks.network", "leakscope.networks.inference"),
        ("defenses.dpsgd", "opacus"),
        ("trials.backends", "dask"),
        ("trials.backends", "distributed"),
        ("trials.backends", "ray"),
    ],
)
def test_an_extra_is_imported_where_it_is_the_subject(
    contracts: list[Contract], importer: str, imported: str
) -> None:
    assert broken(contracts, f"leakscope.{importer}", imported) == []
