"""Every block of code in the documentation is run, or says why not."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from leakscope.cli.app import app
from leakscope.registry import entries
from pages import RUN, all_blocks, commands_of, every_page, run_page, text_of

PAGES = every_page()

# Pages whose code is run by a test that also looks at what it says.
RUN_ELSEWHERE = {
    "README.md": "tests/test_documentation.py",
    "CONTRIBUTING.md": "tests/test_documentation.py",
    "docs/leakage.md": "tests/test_documentation.py",
    "docs/future_works.md": "tests/test_documentation.py",
    "docs/errata.md": "tests/test_errata_page.py",
    "docs/defenses.md": "tests/defenses/test_page.py",
    "docs/explanations.md": "tests/channels/test_page.py",
    "docs/gate.md": "tests/gate/test_page.py",
    "docs/record_explanations.md": "tests/extractions/test_page.py",
    "docs/safety.md": "tests/test_safety_page.py",
}
# Pages whose commands bear no language; they are not run, and checked to be understood.
UNTAGGED = {"README.md", "CONTRIBUTING.md", "docs/papers.md", "docs/safety.md"}
# Languages that are shown and never run. Commands are not among them.
SHOWN = {"json", "text", "toml", "xml", "yaml"}
# What is not run on which page, so that nothing is left out in silence.
NOT_RUN = {
    "docs/attacks.md": ["trains 64 models on 4,000 records"],
    "docs/errata.md": ["the tests compute its rows and compare them with the table"],
    "docs/index.md": [
        "installs into the reader's own environment",
        "trains 33 forests, about a minute",
    ],
    "docs/peers.md": ["downloads the other tools, 10 GB with torch in each environment"],
    "docs/record_explanations.md": ["leaves 2,000 members out, one by one"],
    "docs/remote.md": ["needs a service at that address"],
}
# Pages that train for more than a second.
LONG = {
    "docs/add_an_attack.md", "docs/attacks.md", "docs/audit_sklearn.md", "docs/audit_torch.md",
    "docs/audit_xgboost.md", "docs/choose_a_defense.md", "docs/remote.md",
}  # fmt: skip
PROGRAMS = ("leakscope ", "python ", "pip ", "make ", "$ ")


def pages_to_run() -> list[str]:
    """The pages with something to run that no other test runs."""
    found = [page for page in PAGES if page not in RUN_ELSEWHERE]
    return [page for page in found if any(one.is_run for one in all_blocks(text_of(page)))]


def to_run(page: str) -> Any:
    return pytest.param(page, marks=[pytest.mark.slow] if page in LONG else [])


@pytest.mark.parametrize("page", [to_run(page) for page in pages_to_run()])
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page == "docs/audit_torch.md":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    run_page(page, tmp_path)


@pytest.mark.parametrize(
    "block",
    [
        "```python\nassert 1 == 2\n```",
        "1. A list:\n\n    ```python\n    assert 1 == 2\n    ```",
        "```bash\nleakscope nothing\n```",
        "```bash\nleakscope --version \\\n    --nothing\n```",
        "```bash\nleakscope --version  # exits with 1\n```",
        "```bash\nrm run\n```",
    ],
)
def test_a_block_that_fails_is_noticed(block: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n<!-- not run: why -->\n```python\n1 / 0\n```\n\n{block}\n")
    with pytest.raises(AssertionError):
        run_page(str(page), tmp_path)


def test_a_page_runs_from_top_to_bottom_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        '```python title="own_module.py"\nimport leakscope\n\n\n'
        '@leakscope.register("recipe", "own-recipe")\ndef made():\n    """A recipe."""\n```\n'
        "```bash\nleakscope --version\nleakscope nothing # exits with 2\n```\n"
        "```python\nimport sys\nsys.path.insert(0, '.')\nimport own_module\n```\n"
    )
    path = list(sys.path)
    assert run_page(str(page), tmp_path)["own_module"].made() is None
    assert sys.path == path
    assert "own_module" not in sys.modules
    assert "own-recipe" not in {entry.name for entry in entries("recipe")}


@pytest.mark.parametrize(("page", "test"), RUN_ELSEWHERE.items())
def test_what_is_run_elsewhere_is(page: str, test: str) -> None:
    assert f'"{page}"' in text_of(test)
    commands = [one for one in all_blocks(text_of(page)) if one.language == "bash" and one.is_run]
    assert not commands or "run_page(" in text_of(test), f"{test} runs no command of {page}"


def test_no_block_is_left_out_in_silence() -> None:
    left_out: dict[str, list[str]] = {}
    for page in PAGES:
        blocks = all_blocks(text_of(page))
        typed = " ".join(one.code for one in blocks if one.language == "bash" and one.is_run)
        for block in blocks:
            where = f"{page}, line {block.line}"
            if block.not_run is not None:
                left_out.setdefault(page, []).append(block.not_run)
            elif block.title is not None and page not in RUN_ELSEWHERE:
                assert block.title in typed, f"{where}: no command uses {block.title}"
            elif page not in UNTAGGED:
                assert block.language in {*RUN, *SHOWN}, f"{where}: which language is it?"
            if block.language not in RUN and page not in UNTAGGED:
                hidden = [line for line in block.code.splitlines() if line.startswith(PROGRAMS)]
                assert not hidden, f"{where}: commands are bash, run or marked as not run: {hidden}"
    assert left_out == NOT_RUN


def shown_commands() -> list[str]:
    """The commands that are shown and not run, each once."""
    found = []
    for page in PAGES:
        for block in all_blocks(text_of(page)):
            if block.language in ("", "bash") and not block.is_run:
                typed = block.code.replace("\\\n", " ").splitlines()
                lines = [one for one in typed if one.startswith("leakscope ")]
                found += [shlex.join(words) for words, _ in commands_of("\n".join(lines))]
    return sorted(set(found))


@pytest.mark.parametrize("typed", shown_commands())
def test_commands_that_are_not_run_are_understood(typed: str) -> None:
    program = typer.main.get_command(app)
    for command in program.commands.values():  # type: ignore[attr-defined]
        command.callback = lambda **options: None
    words = [word for word in shlex.split(typed)[1:] if word != "…"]  # what is left out
    program.main(words, prog_name="leakscope", standalone_mode=False)
