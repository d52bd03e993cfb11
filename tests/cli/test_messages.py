from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
LOG = logging.getLogger("leakscope.somewhere")


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of every audit that logs on every level."""

    def talk(*_: object) -> None:
        LOG.debug("the %s", "smallest [bold]thing")
        LOG.info("a step\nof many")
        LOG.warning("something odd")

    monkeypatch.setattr("leakscope.report.folders.check_folder", talk)
    monkeypatch.setattr("leakscope.cli.calling.Call.make", lambda call: call.make)


WARNING = "Warning: something odd\n"
INFO, DEBUG = "a step of many\n", "the smallest [bold]thing\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], WARNING),
        (["-v"], INFO + WARNING),
        (["--verbose"], INFO + WARNING),
        (["-vv"], DEBUG + INFO + WARNING),
        (["-v", "-v", "-v"], DEBUG + INFO + WARNING),
    ],
)
@pytest.mark.usefixtures("talkative")
def test_messages_are_lines_on_stderr(run: Run, options: list[str], said: str) -> None:
    before = logging.getLogger("leakscope").level, [*logging.getLogger("leakscope").handlers]
    ran = run("audit", *options)
    assert ran.stderr.startswith(said)
    after = logging.getLogger("leakscope").level, [*logging.getLogger("leakscope").handlers]
    assert after == before


@pytest.mark.slow
def test_an_audit_tells_its_steps(run: Run) -> None:
    words = ("--dataset", "breast-cancer", "--recipe", "tree", "--shadows", 2, "--workers", 1)
    first = run("audit", *words, "--attacks", "loss,lira-offline,gaussian-error", "-v")
    assert first.code == 0, first.stderr
    for told in (
        "training tree on ",
        "training 2 models of tree on local\n",
        "trained 2 models in ",
        "gaussian-error does not run on DecisionTreeClassifier: It attacks regression",
        "control blind baseline: ",
        "clipped the probability of ",
    ):
        assert told in first.stderr, told
    again = run("audit", *words, "--attacks", "loss,lira-offline", "-v")
    assert "2 of 2 models are in " in again.stderr
    assert "trained 2 models" not in again.stderr


@pytest.mark.slow
def test_the_library_is_silent_unless_it_is_listened_to() -> None:
    program = """
import sys, logging
import numpy as np
import leakscope
if len(sys.argv) > 1:
    logging.basicConfig(level=logging.DEBUG, format="%(name)s %(levelname)s")
logging.getLogger("leakscope.datasets").warning("odd")
y = np.arange(80) % 2
p = np.random.default_rng(0).random(80)
leakscope.audit_predictions(p, y, p[::-1], y, attacks=["loss"])
"""
    for words, expected in (([], ""), (["loud"], "leakscope.auditing.run INFO")):
        ran = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
        )
        assert ran.stdout == ""
        assert ran.stderr == "" if not words else expected in ran.stderr
