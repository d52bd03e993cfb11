"""Models, recipes and addresses that cannot be audited."""

from __future__ import annotations

import os
import pickle

from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from bad_input.answering import (
    ANSWERS,
    answering_file,
    compact_file,
    fitted,
    foreign_skops_file,
    joblib_file,
    safetensors_file,
    skops_file,
    torch_file,
    weights,
)
from bad_input.cases import A, B, Case, case, with_cell

SIDES = "--members a.csv --nonmembers b.csv --label y --attacks loss --out out"
MODEL = f"audit {SIDES} --model m.skops"
TRUSTED = f"audit {SIDES} --model m.pkl --trust-pickle"
WEIGHTS = f"audit {SIDES} --model m.pt"
NAMED = f"{WEIGHTS} --network mlp:2,3,2"
RECIPE = f"audit {SIDES} --recipe"
URL = f"audit {SIDES} --model-url"

GOOD = {"m.skops": lambda path: path.write_bytes(skops_file())}
TWO = {"a.csv": A[["x", "z", "y"]], "b.csv": B[["x", "z", "y"]]}

FILES = [
    case("no model file", MODEL, "'m.skops'"),
    case("a folder for a model", MODEL, "'m.skops'", "folder", files={"m.skops": None}),
    case("a device for a model", f"{MODEL} --model /dev/zero", "'/dev/zero'", "pipe or a device"),
    case("a pipe for a model", MODEL, "'m.skops'", "pipe or a device",
         files={"m.skops": os.mkfifo}),
    case("an empty model file", MODEL, "'m.skops'", "empty", files={"m.skops": b""}),
    case("a model file cut short", MODEL, "'m.skops'", "cut short",
         files={"m.skops": lambda path: path.write_bytes(skops_file()[:-100])}),
    case("a model file cut to a byte", MODEL, "'m.skops'",
         files={"m.skops": lambda path: path.write_bytes(skops_file()[:1])}),
    case("a damaged model file", MODEL, "'m.skops'",
         files={"m.skops": lambda path: path.write_bytes(
             skops_file().replace(b"PK\x03\x04", b"PK\x03\x05", 1))}),
    case("a table for a model", f"{MODEL} --model a.csv", "'a.csv'", "--trust-pickle"),
    case("a pickle that nobody trusts", MODEL, "'m.skops'", "--trust-pickle",
         files={"m.skops": lambda path: path.write_bytes(pickle.dumps(fitted()))}),
    case("joblib that nobody trusts", MODEL, "'m.skops'", "--trust-pickle",
         files={"m.skops": joblib_file(1)}),
    case("types that nobody knows", MODEL, "'m.skops'", "Stubborn",
         files={"m.skops": lambda path: path.write_bytes(foreign_skops_file())}),
    case("a trusted file cut short", TRUSTED, "'m.pkl'",
         files={"m.pkl": lambda path: path.write_bytes(pickle.dumps(fitted())[:-100])}),
    case("a trusted file of no model", TRUSTED, "dict", files={"m.pkl": joblib_file({"w": 1})}),
    case("a trusted file of a class that is gone", TRUSTED, "'m.pkl'", "nowhere",
         files={"m.pkl": b"\x80\x04cnowhere\nModel\n."}),
    case("a trusted file that leaves", TRUSTED, "SystemExit: goodbye",
         files={"m.pkl": b"csys\nexit\n(S'goodbye'\ntR."}),
    case("a trusted text", TRUSTED, "'m.pkl'", files={"m.pkl": "a model"}),
    case("a model that is not fitted", TRUSTED, "LogisticRegression", "not fitted",
         files={"m.pkl": joblib_file(LogisticRegression())}),
    case("a class of models", TRUSTED, "LogisticRegression",
         files={"m.pkl": joblib_file(LogisticRegression)}),
    case("a model that only transforms", TRUSTED, "StandardScaler",
         files={"m.pkl": joblib_file(StandardScaler().fit(A[["x", "z"]]))}),
    case("a model that only clusters", TRUSTED, "KMeans",
         files={"m.pkl": joblib_file(KMeans(2, n_init=1).fit(A[["x", "z"]]))}),
    case("a model of other columns", MODEL, "no column 'x'",
         files={**GOOD, "a.csv": A.drop(columns="x"), "b.csv": B.drop(columns="x")}),
    case("a model of fewer columns", TRUSTED, "LogisticRegression", "2 features", "1 feature",
         files={**TWO,
                "m.pkl": joblib_file(LogisticRegression().fit(A[["x"]].to_numpy(), A["y"]))}),
    case("a gap that the model refuses", MODEL, "Column 'z' of the members is missing in row 4",
         files={**GOOD, "a.csv": with_cell(A, 4, "z", "")}),
    case("a text that the model refuses", MODEL, "Column 'z' of the nonmembers", "'deep'",
         files={**GOOD, "b.csv": with_cell(B, 4, "z", "deep")}),
    case("a model of other labels", MODEL, "True", "'no'",
         files={**GOOD, "a.csv": A.assign(y=A["y"] == "yes"),
                "b.csv": B.assign(y=B["y"] == "yes")}),
    case("a model of numbers, labels of texts", TRUSTED, "LinearRegression", "'",
         files={"m.pkl": joblib_file(LinearRegression().fit(A[["x", "z"]], A["x"]))}),
]  # fmt: skip

SAID = {
    "raises": ("the weights are gone",),
    "raises-nothing": ("RuntimeError",),
    "leaves": ("goodbye",),
    "nan": ("nan, 0.5", "record 3"),
    "infinite": ("inf, 0.5", "record 3"),
    "negative": ("-0.5, 1.5", "record 3"),
    "unnormalized": ("0.9, 0.9", "record 3"),
    "shorter": ("shape", "records"),
    "one-row": ("shape (1, 2)",),
    "cube": ("2, 2)",),
    "three-classes": ("3 probabilities", "2 classes"),
    "texts": ("much",),
    "ragged": ("list",),
    "nothing": ("shape ()",),
    "complex": ("complex",),
    "a-mapping": ("dict",),
}
ODD = [
    case(f"a model that answers {kind}", TRUSTED, "Answering", *SAID[kind],
         files={"m.pkl": answering_file(kind)})
    for kind in ANSWERS
]  # fmt: skip

NETWORKS = [
    case("weights without a network", WEIGHTS, "'m.pt'", "--network",
         files={"m.pt": torch_file(weights), **TWO}),
    case("safetensors without a network", f"{WEIGHTS} --model m.safetensors", "--network",
         files={"m.safetensors": safetensors_file, **TWO}),
    case("weights of another network", f"{WEIGHTS} --network mlp:2,4,2", "'m.pt'", "(3, 2)",
         files={"m.pt": torch_file(weights), **TWO}),
    case("a network nobody knows", f"{WEIGHTS} --network lenet6:1,28,28,10", "'lenet6'", "lenet5",
         files={"m.pt": torch_file(weights), **TWO}),
    case("a network of no sizes", f"{WEIGHTS} --network mlp:2,,2", "'mlp:2,,2'",
         files={"m.pt": torch_file(weights), **TWO}),
    case("a network of nothing", f"{WEIGHTS} --network ''", "''",
         files={"m.pt": torch_file(weights), **TWO}),
    case("a network of an odd activation", f"{WEIGHTS} --network mlp:2,3,2,cosine", "cosine",
         files={"m.pt": torch_file(weights), **TWO}),
    case("a network of no units", f"{WEIGHTS} --network mlp:2,0,2", "0",
         files={"m.pt": torch_file(weights), **TWO}),
    case("a network of other records", NAMED, "MLP", "'town'", files={"m.pt": torch_file(weights)}),
    case("a torch file of no weights", NAMED, "'m.pt'", "list",
         files={"m.pt": torch_file(lambda: [1, 2]), **TWO}),
    case("a torch file that runs code", NAMED, "'m.pt'", "--trust-pickle",
         files={"m.pt": torch_file(fitted), **TWO}),
    case("a torch file cut short", NAMED, "'m.pt'", "cut short",
         files={"m.pt": lambda path: path.write_bytes(b"PK\x03\x04 and no more"), **TWO}),
    case("safetensors cut short", f"{NAMED} --model m.safetensors", "'m.safetensors'",
         files={"m.safetensors": lambda path: (
             safetensors_file(path), path.write_bytes(path.read_bytes()[:-3])), **TWO}),
    case("a compact file cut short", f"{NAMED} --model m.lsp", "'m.lsp'",
         files={"m.lsp": compact_file(lambda data: data[:-3]), **TWO}),
    case("a compact file with a bit turned", f"{NAMED} --model m.lsp", "'m.lsp'", "checksum",
         files={"m.lsp": compact_file(lambda data: data[:-3] + b"\xff" + data[-2:]), **TWO}),
    case("a network beside a whole model", f"{MODEL} --network mlp:2,3,2", "--network",
         "'m.skops'", files=GOOD),
    case("weights beside a recipe of no network", f"{WEIGHTS} --recipe tree", "'m.pt'", "'tree'",
         files={"m.pt": torch_file(weights), **TWO}),
]  # fmt: skip


def module(text: str) -> dict[str, str]:
    return {"own_recipes.py": text}


RECIPES = [
    case("a recipe nobody knows", f"{RECIPE} forrest", "'forrest'", "did you mean 'forest'?"),
    case("a recipe like none", f"{RECIPE} qqqq", "'qqqq'", "choose from"),
    case("an empty recipe", f"{RECIPE} ''", "''"),
    case("a module that is not there", f"{RECIPE} own_recipes:one", "'own_recipes:one'"),
    case("an attribute that is not there", f"{RECIPE} own_recipes:two", "'two'",
         files=module("one = 1\n")),
    case("no attribute", f"{RECIPE} own_recipes:", "'own_recipes:'", files=module("one = 1\n")),
    case("no module", f"{RECIPE} :one", "':one'"),
    case("a module within itself", f"{RECIPE} .own:one", "'.own:one'"),
    case("a recipe that is a number", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "int",
         files=module("one = 1\n")),
    case("a module that raises", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "not today",
         files=module("raise ValueError('not today.')\n")),
    case("a module that is no Python", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "Syntax",
         files=module("one = = 1\n")),
    case("a module that leaves", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "SystemExit",
         files=module("raise SystemExit(0)\n")),
    case("a function that raises", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "no luck",
         files=module("def one():\n    raise KeyError('no luck')\n")),
    case("a function of arguments", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "size",
         files=module("def one(size):\n    return None\n")),
    case("a recipe that is a torch module", f"{RECIPE} own_recipes:one", "TorchRecipe", "Linear",
         files=module("import torch\ndef one():\n    return torch.nn.Linear(2, 2)\n")),
    case("a recipe that cannot be cloned", f"{RECIPE} own_recipes:one", "'own_recipes:one'", "Odd",
         files=module("from sklearn.linear_model import LogisticRegression\n"
                      "class Odd(LogisticRegression):\n"
                      "    def __init__(self, C=1):\n        self.C = [C]\n"
                      "def one():\n    return Odd()\n")),
    case("a recipe that cannot be trained", f"{RECIPE} own_recipes:one", "'own_recipes:one'",
         "no convergence", files=module("from bad_input.answering import Stubborn\n"
                                        "one = Stubborn('unfit')\n")),
    case("a recipe whose models answer nonsense", f"{RECIPE} own_recipes:one", "Stubborn",
         "nan, 0.5", files=module("from bad_input.answering import Stubborn\n"
                                  "one = Stubborn('nan')\n")),
]  # fmt: skip

ADDRESSES = [
    case("no address", f"{URL} localhost", "'localhost'"),
    case("an address of a file", f"{URL} file:///etc/passwd", "file:"),
    case("an address of no host", f"{URL} http://", "'http://'"),
    case("an address of no port", f"{URL} http://localhost:port/", "address of the model"),
    case("an address where nobody answers", f"{URL} http://127.0.0.1:9/x --url-options retries=0",
         "127.0.0.1:9"),
    case("an option nobody knows", f"{URL} http://127.0.0.1:9/x --url-options retry=0",
         "'retry'", "did you mean 'retries'?"),
    case("an option without a value", f"{URL} http://127.0.0.1:9/x --url-options retries",
         "'retries'", "NAME=VALUE"),
    case("an option of a wrong kind", f"{URL} http://127.0.0.1:9/x --url-options budget=many",
         "budget", "'many'"),
    case("a secret that is not there",
         f"{URL} http://127.0.0.1:9/x --url-options token_env=LEAKSCOPE_NO_SUCH",
         "LEAKSCOPE_NO_SUCH"),
]  # fmt: skip

CASES: list[Case] = [*FILES, *ODD, *NETWORKS, *RECIPES, *ADDRESSES]
