"""What docs/safety.md shows runs, and does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pages import run


def test_the_code_of_the_page_about_safety_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("docs/safety.md")
    inputs = torch.zeros(1, 4)
    assert torch.equal(made["same"](inputs), made["module"](inputs))
    assert {one.name for one in (tmp_path / "to-share").iterdir()} == {"report.html", "report.json"}
    assert made["report"].records is not None
