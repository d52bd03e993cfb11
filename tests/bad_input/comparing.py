"""Comparisons that cannot be made: defenses, values of theirs, records and networks."""

from __future__ import annotations

import pandas as pd

from bad_input.cases import A, B, Case, case

POOL = pd.concat([A, B], ignore_index=True)
TABLE = "compare --table pool.csv --label y --attacks loss --seeds 1 --workers 1 --out out"
COMPARE = f"{TABLE} --recipe logistic"
NETWORK = f"{TABLE} --table numbers.csv --recipe own_nets:plain"
WITH = {
    "pool.csv": POOL,
    "numbers.csv": POOL[["x", "z", "y"]],
    "own_nets.py": """
from torch import nn
from leakscope.networks import MLP
from leakscope.recipes.torch import TorchRecipe

def made(inputs, classes):
    return MLP((inputs, 3, classes))

def normed(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 3), nn.BatchNorm1d(3), nn.Linear(3, classes))

def broken(inputs, classes):
    raise OSError("the disk of weights is away")

plain = TorchRecipe("plain", made, epochs=1)
with_norm = TorchRecipe("with-norm", normed, epochs=1)
without_module = TorchRecipe("without-module", broken, epochs=1)
early = TorchRecipe("early", made, epochs=1, stop_at_accuracy=0.9)
""",
}

# As it is written, and what its sentence must hold.
SPELLINGS = {
    "nois:1": ("'nois'", "did you mean 'noise'?"),
    "qqqq": ("'qqqq'", "choose from"),
    "noise": ("'noise'", "noise:0.1"),
    "noise:much": ("'noise:much'", "noise:0.1"),
    "noise:": ("'noise:'", "noise:0.1"),
    "noise:nan": ("sigma", "nan"),
    "noise:inf": ("sigma", "inf"),
    "noise:-1": ("sigma", "-1"),
    "noise:0.1:2": ("'noise:0.1:2'",),
    "none": ("none",),
    "none+noise:1": ("'none+noise:1'",),
    "noise:1,,": ("--defenses", "'noise:1,,'"),
    " ": ("--defenses", "' '"),
    "l2:-1": ("weight_decay", "-1"),
    "round:1.5": ("digits", "1.5"),
    "round:-1": ("digits", "-1"),
    "top-k:0": ("k", "0"),
    "temperature:0": ("option t ", "0"),
    "memguard:-0.1": ("distortion", "-0.1"),
    "explain-crowd:0": ("0",),
    "explain-exponential:0": ("epsilon", "0"),
    "explain-refuse:-1": ("tolerance", "-1"),
    "smoothgrad:-1": ("-1",),
    # Of networks, around what is none.
    "prune:16": ("'logistic'", "TorchRecipe"),
    "dpsgd:1": ("'logistic'", "TorchRecipe"),
}
NETWORK_SPELLINGS = {
    "prune:0.5": ("ratio", "0.5"),
    "prune:nan": ("ratio", "nan"),
    "minmax:-0.3": ("gamma", "-0.3"),
    "dpsgd:0": ("epsilon", "0"),
    "dpsgd:-1": ("epsilon", "-1"),
    "early-stop:0": ("'early-stop'", "'plain'"),
    "early-stop:2.5": ("2.5",),
    "equal-compute:-1": ("-1",),
    "smooth-labels:2": ("alpha", "2"),
    "distill:0": ("temperature", "0"),
    "dpsgd:1+dpsgd:2": ("dpsgd:2",),
    "dpsgd:1+prune:4": ("prune:4",),
    "minmax:0.3+dpsgd:1": ("'plain+minmax:0.3'", "DP-SGD"),
}
DEFENSES = [
    *(
        case(f"the defense {text!r}", f"{COMPARE} --defenses '{text}'", *told, files=WITH)
        for text, told in SPELLINGS.items()
    ),
    *(
        case(f"the defense {text!r}", f"{NETWORK} --defenses '{text}'", *told, files=WITH)
        for text, told in NETWORK_SPELLINGS.items()
    ),
]

RECORDS = [
    case("no defense", COMPARE, "--defenses", files=WITH),
    case("no table", f"{COMPARE} --defenses round:1 --table gone.csv", "gone.csv"),
    case("too few records", f"{COMPARE} --defenses round:1 --records 40", "different records", "20",
         files=WITH),
    case("more members than records", f"{COMPARE} --defenses round:1 --members 50", "50", "120",
         files=WITH),
    case("too few persons", f"{COMPARE} --defenses round:1 --unit person", "persons", "20",
         files={**WITH, "pool.csv": POOL.assign(person=POOL.index // 4)}),
    case("no column of labels", f"{COMPARE} --defenses round:1 --label yy", "no column 'yy'",
         files=WITH),
    case("one class", f"{COMPARE} --defenses round:1", "'yes'",
         files={**WITH, "pool.csv": POOL.assign(y="yes")}),
    case("numbers", f"{COMPARE} --defenses round:1", "numbers",
         files={**WITH, "pool.csv": POOL.assign(y=POOL["x"])}),
    case("a regression", f"{TABLE} --recipe ridge --defenses round:1", "'ridge'",
         files={**WITH, "pool.csv": POOL.assign(y=POOL["x"])}),
    case("a gap in the labels", f"{COMPARE} --defenses round:1", "label", "row 0",
         files={**WITH, "pool.csv": POOL.assign(y="")}),
]  # fmt: skip

OTHERS = [
    case("no seeds", f"{COMPARE} --defenses round:1 --seeds 0", "--seeds", files=WITH),
    case("a limit above 1", f"{COMPARE} --defenses round:1 --limit 7", "limit", "7", files=WITH),
    case("an attack nobody knows", f"{COMPARE} --defenses round:1 --attacks los", "'los'", "'loss'",
         files=WITH),
    case("an attack of shadow models", f"{COMPARE} --defenses round:1 --attacks lira", "'lira'",
         "shadows", files=WITH),
    case("a recipe nobody knows", f"{COMPARE} --defenses round:1 --recipe netwrk", "'netwrk'",
         "'network'", files=WITH),
    case("a table beside a data set", f"{COMPARE} --defenses round:1 --dataset iris", "--table",
         "--dataset", files=WITH),
    case("a table without a label", "compare --table pool.csv --defenses round:1", "--table",
         "--label", files=WITH),
    case("a label without a table", "compare --label y --defenses round:1", "--label", "--table"),
    case("a cluster without a kind", f"{COMPARE} --defenses round:1 --address tcp://h:1",
         "tcp://h:1", files=WITH),
    case("a file for the folder", f"{COMPARE} --defenses round:1 --out pool.csv", "'pool.csv'",
         files=WITH),
    case("a folder for a file", f"{COMPARE} --defenses round:1", "compare.json",
         files={**WITH, "out/compare.json": None}),
    case("batch normalization under DP-SGD", f"{NETWORK} --recipe own_nets:with_norm "
         "--defenses dpsgd:1", "BatchNorm1d", files=WITH),
    case("texts for a network", f"{NETWORK} --table pool.csv --defenses l2:1", "'town'",
         "encode it", files=WITH),
    case("an early end under DP-SGD", f"{NETWORK} --recipe own_nets:early --defenses dpsgd:1",
         "'early'", files=WITH),
    case("a network that cannot be made", f"{NETWORK} --recipe own_nets:without_module "
         "--defenses l2:1", "'without-module'", "the disk of weights is away", files=WITH),
]  # fmt: skip

CASES: list[Case] = [*DEFENSES, *RECORDS, *OTHERS]
