"""Nothing leaves the machine unless a download, a cluster or a model behind HTTP is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

# Python imports this by its name when it starts, also in the processes that train shadow models.
# What asks for the network is refused, and noted, in case somebody goes on in spite of it. Local
# processes talk through sockets that have a file for an address, which are left alone.
WATCH = """
import os, socket, sys

def watch(event, given):
    far = event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request")
    if event == "socket.__new__":
        far = given[1] in (socket.AF_INET, socket.AF_INET6)
    if far:
        with open(os.environ["NETWORK_LOG"], "a") as log:
            print(event, given, file=log)
        raise OSError("there is no network")

sys.addaudithook(watch)
"""


@pytest.fixture(scope="module")
def fonts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where matplotlib keeps what it knows of fonts, which it takes seconds to find out."""
    return tmp_path_factory.mktemp("fonts")


@pytest.fixture
def offline(tmp_path: Path, fonts: Path) -> dict[str, str]:
    """The environment of a process that cannot reach the network."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WATCH)
    package = str(Path(__import__("leakscope").__file__).parent.parent)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), package]),
        "NETWORK_LOG": str(tmp_path / "network.log"),
        "MPLCONFIGDIR": str(fonts),
        "OMP_NUM_THREADS": "1",
    }


def people(n: int, seed: int) -> pd.DataFrame:
    """A table of n people: two numbers, a text, and an answer."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2))
    return pd.DataFrame(
        {
            "height": numbers[:, 0],
            "weight": numbers[:, 1],
            "town": rng.choice(["here", "there"], n),
            "answer": np.where(numbers[:, 0] + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def ran(offline: dict[str, str], folder: Path, code: str, *words: str) -> int:
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=offline, cwd=folder, check=False
    ).returncode


COMMAND = "import sys; from leakscope.cli import main; sys.exit(main(sys.argv[1:]))"
NET = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')"


def test_the_watch_sees_who_asks(offline: dict[str, str], tmp_path: Path) -> None:
    assert ran(offline, tmp_path, NET) != 0
    assert "urllib.Request" in (tmp_path / "network.log").read_text()
    (tmp_path / "network.log").unlink()
    assert ran(offline, tmp_path, "import socket; socket.create_connection(('127.0.0.1', 9))") != 0
    assert "socket.getaddrinfo" in (tmp_path / "network.log").read_text()


COMMANDS = {
    "audit of files": "audit --members a.csv --nonmembers b.csv --label answer "
    "--groups town --model m.skops --attacks loss",
    "audit of predictions": "audit --member-predictions p.csv --nonmember-predictions q.csv "
    "--attacks loss --redact",
    "audit with shadow models": "audit --dataset iris --recipe tree --shadows 4 --workers 2 "
    "--attacks loss,lira-offline",
    "compare": "compare --table a.csv --label answer --recipe logistic --defenses round:1 "
    "--seeds 1 --attacks loss --workers 1",
    "reproduce --list": "reproduce --list",
    "datasets": "datasets",
    "a data set that is not there": "audit --dataset mnist",
}


# An interpreter for each, of which those that compute take seconds.
SHORT = {"datasets"}


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=[] if one in SHORT else [pytest.mark.slow]) for one in COMMANDS],
)
def test_commands_ask_nobody(offline: dict[str, str], tmp_path: Path, case: str) -> None:
    tables = [people(60, seed) for seed in range(2)]
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression())
    model.fit(tables[0][["height", "weight", "town"]], tables[0]["answer"])
    skops.io.dump(model, tmp_path / "m.skops")
    for table, records, answers in zip(tables, "ab", "pq", strict=True):
        table.to_csv(tmp_path / f"{records}.csv", index=False)
        saved = pd.DataFrame(
            model.predict_proba(table[["height", "weight", "town"]]), columns=model.classes_
        )
        saved.assign(label=table["answer"]).to_csv(tmp_path / f"{answers}.csv", index=False)
    code = ran(offline, tmp_path, COMMAND, *COMMANDS[case].split())
    assert code == (2 if case == "a data set that is not there" else 0)
    assert not (tmp_path / "network.log").exists()
