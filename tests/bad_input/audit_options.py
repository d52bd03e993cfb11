"""Options of ``leakscope audit`` that are wrong, unknown, or contradict each other."""

from __future__ import annotations

from bad_input.cases import AUDIT, PREDICTED, Case, Files, case

FILES = "audit --members a.csv --nonmembers b.csv --label y"
DRAWN = "audit --dataset iris --recipe tree --out out"

VALUES = [
    case("a seed below 0", "audit --seed -1", "--seed"),
    case("a seed of words", "audit --seed first", "--seed"),
    case("a seed of 33 bits", "audit --seed 4294967296", "--seed"),
    case("a limit above 1", f"{AUDIT} --limit 2", "limit", "2.0"),
    case("a limit of 0", f"{AUDIT} --limit 0", "limit", "0.0"),
    case("a limit that is no number", f"{AUDIT} --limit nan", "limit", "nan"),
    case("a limit of words", f"{AUDIT} --limit small", "--limit"),
    case("a prior of 1", f"{AUDIT} --prior 1", "prior", "1.0"),
    case("a delta below 0", f"{AUDIT} --delta -1e-5", "delta", "-1e-05"),
    case("an overlap above 1", f"{AUDIT} --max-overlap 1.5", "max_overlap", "1.5"),
    case("one record", f"{DRAWN} --records 1", "--records"),
    case("shadows below 0", f"{DRAWN} --shadows -1", "--shadows"),
    case("no workers", f"{DRAWN} --workers 0", "--workers"),
    case("half a worker", f"{DRAWN} --workers 0.5", "--workers"),
    case("a backend nobody knows", f"{DRAWN} --backend spark", "--backend", "'spark'"),
    case("an address of a local backend", f"{DRAWN} --backend local --address tcp://h:1",
         "address", "tcp://h:1"),
    case("an address without a backend", f"{DRAWN} --address tcp://h:1", "--address", "--backend"),
    case("an option without its value", "audit --seed", "--seed"),
    case("an option of audit nobody knows", "audit --memberz a.csv", "--memberz", "--members"),
    case("a flag with a value", "audit --fresh=yes", "--fresh"),
    case("a stray word", "audit my-model", "my-model"),
    case("a command nobody knows", "audti", "'audti'", "audit"),
    case("a program option nobody knows", "--loudly audit", "--loudly"),
]  # fmt: skip

NAMES = [
    case("an attack nobody knows", f"{AUDIT} --attacks los", "'los'", "did you mean 'loss'?"),
    case("an attack like none", f"{AUDIT} --attacks qqqq", "'qqqq'", "choose from"),
    case("no attack", f"{AUDIT} --attacks ''", "--attacks", "''"),
    case("an empty attack", f"{AUDIT} --attacks loss,,lira", "--attacks", "'loss,,lira'"),
    case("attacks with an open quote", f"{AUDIT} --attacks '\"loss'", "--attacks"),
    case("a channel nobody knows", f"{AUDIT} --channels lable", "'lable'", "did you mean 'label'?"),
    case("an attack through another channel", f"{AUDIT} --channels label",
         "attacks loss", "channels label"),
    case("a data set nobody knows", "audit --dataset adlut --out out", "'adlut'",
         "did you mean 'adult'?"),
    case("an option the data set has not",
         f"{DRAWN} --dataset adult --dataset-options encodin=table",
         "'encodin'", "did you mean 'encoding'?"),
    case("an option of a data set of a wrong kind",
         f"{DRAWN} --dataset synthetic --dataset-options n=many",
         "'many'", "whole number"),
    case("a value the data set has not",
         f"{DRAWN} --dataset adult --dataset-options encoding=tabel",
         "'tabel'", "table"),
    case("options without a value", f"{DRAWN} --dataset-options encoding", "'encoding'",
         "NAME=VALUE"),
    case("a data set without its file", f"{DRAWN} --dataset mnist", "'mnist'", "LEAKSCOPE_DATA"),
    case("a data folder without the file", f"{DRAWN} --dataset location30 --data data",
         "'location30'", "data", files={"data": None}),
    case("a damaged data file", f"{DRAWN} --dataset mnist --data data", "mnist.npz",
         files={"data/mnist.npz": b"PK\x03\x04 nothing"}),
    case("groups the data set has not", f"{DRAWN} --groups sex", "no group 'sex'"),
]  # fmt: skip

# One option, another, and their values.
BOTH = {
    ("--members", "--dataset"): f"{AUDIT} --dataset iris",
    ("--members", "--dataset-options"): f"{AUDIT} --dataset-options a=1",
    ("--members", "--records"): f"{AUDIT} --records 100",
    ("--members", "--data"): f"{AUDIT} --data .",
    ("--members", "--download"): f"{AUDIT} --download",
    ("--members", "--member-predictions"): f"{AUDIT} --member-predictions p.csv",
    ("--member-predictions", "--model"): f"{PREDICTED} --model m.skops",
    ("--member-predictions", "--recipe"): f"{PREDICTED} --recipe tree",
    ("--member-predictions", "--shadows"): f"{PREDICTED} --shadows 4",
    ("--member-predictions", "--max-overlap"): f"{PREDICTED} --max-overlap 0.1",
    ("--member-predictions", "--dataset"): f"{PREDICTED} --dataset iris",
    ("--member-predictions", "--model-url"): f"{PREDICTED} --model-url http://h/x",
    ("--model", "--model-url"): f"{FILES} --model m.skops --model-url http://h/x",
    ("--redact", "--fresh"): f"{DRAWN} --redact --fresh",
}
CONTRADICTIONS = [
    case(" and ".join(options), line, *options, "contradict") for options, line in BOTH.items()
]

# An option, what is missing beside it.
ALONE = {
    ("--members", "--nonmembers"): "audit --members a.csv",
    ("--nonmembers", "--members"): "audit --nonmembers b.csv",
    ("--member-predictions", "--nonmember-predictions"): "audit --member-predictions p.csv",
    ("--nonmember-predictions", "--member-predictions"): "audit --nonmember-predictions q.csv",
    ("--members", "--label"): "audit --members a.csv --nonmembers b.csv --recipe tree",
    ("--members", "--model"): FILES,
    ("--model", "--members"): "audit --model m.skops",
    ("--model-url", "--members"): "audit --model-url http://h/x",
    ("--url-options", "--model-url"): f"{AUDIT} --url-options budget=1",
    ("--trust-pickle", "--model"): f"{AUDIT} --trust-pickle",
    ("--network", "--model"): f"{AUDIT} --network mlp:2,2",
    ("--label", "--members"): "audit --label y",
    ("--unit", "--members"): "audit --unit person",
    ("--workers", "--shadows"): f"{AUDIT} --workers 2",
    ("--backend", "--shadows"): f"{AUDIT} --backend dask",
    ("--fresh", "--shadows"): f"{DRAWN} --shadows 0 --fresh",
    ("--recipe", "--shadows"): f"{FILES} --recipe tree --model-url http://h/x",
}  # fmt: skip
MISSING = [case(f"{one} without {other}", line, one, other) for (one, other), line in ALONE.items()]


RUN: Files = {"out/records.csv": "row\n"}
PLACES = [
    case("a file for a folder", f"{DRAWN} --out taken", "'taken'", files={"taken": "a file"}),
    case("a file above the folder", f"{DRAWN} --out taken/below", "'taken/below'",
         files={"taken": "a file"}),
    case("a name that is too long", f"{DRAWN} --out {'x' * 300}", "xxxxx"),
    case("a folder in place of a file", DRAWN, "'out'", "report.json",
         files={"out/report.json": None}),
    case("a folder that takes no files", f"{DRAWN} --out /proc/leakscope", "'/proc/leakscope'"),
    case("redacted beside what is not", f"{DRAWN} --redact", "out", "records.csv", files=RUN),
    case("a file in place of the trials", f"{DRAWN} --shadows 4 --attacks lira-offline", "trials",
         files={"out/trials": "a file"}),
]  # fmt: skip

CASES: list[Case] = [*VALUES, *NAMES, *CONTRADICTIONS, *MISSING, *PLACES]
