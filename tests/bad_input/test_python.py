"""The public functions, given what they cannot use: one sentence that names what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

import leakscope as ls
from bad_input.answering import ANSWERS, Answering, fitted
from bad_input.audit_models import SAID
from bad_input.cases import A, B, P, Q, check_sentence, snapshot

X, Y = A[["x", "z"]].to_numpy(), (A["y"] == "yes").to_numpy().astype(int)
V, W = B[["x", "z"]].to_numpy(), (B["y"] == "yes").to_numpy().astype(int)
NAN, INF = float("nan"), float("inf")

Call = Callable[[], object]
# A name, a call that must be refused, and what the sentence must hold.
Cases = list[tuple[str, Call, tuple[str, ...]]]


def model(**changes: Any) -> LogisticRegression:
    return LogisticRegression(**changes).fit(X, Y)


def changed(array: Any, place: Any, value: Any, dtype: Any = None) -> Any:
    other = np.array(array, dtype=dtype or array.dtype)
    other[place] = value
    return other


def audit(members: Any = (X, Y), nonmembers: Any = (V, W), **options: Any) -> Call:
    thing = options.pop("model", None)
    return lambda: ls.audit(
        model() if thing is None else thing, members, nonmembers, attacks=["loss"], **options
    )


AUDIT: Cases = [
    ("a text for a model", audit(model="m.skops"), ("m.skops", "load_model")),
    ("a number for a model", audit(model=3), ("int",)),
    ("a class for a model", audit(model=LogisticRegression), ("LogisticRegression", "instance")),
    ("a model that is not fitted", audit(model=LogisticRegression()), ("not fitted",)),
    ("a dictionary of records", audit({"X": X}), ("members", "dict")),
    ("three things for records", audit((X, Y, Y)), ("members", "tuple")),
    ("no records", audit(None), ("members", "NoneType")),
    ("no rows", audit((X[:0], Y[:0])), ("members are empty", "(0, 2)")),
    ("no columns", audit((X[:, :0], Y)), ("members are empty", "(60, 0)")),
    ("a vector of features", audit((X[:, 0], Y)), ("(60,)", "reshape")),
    ("fewer labels", audit((X, Y[:-1])), ("members", "60", "59")),
    ("a matrix of labels", audit((X, np.column_stack([Y, Y]))), ("label", "(60, 2)")),
    ("texts for features", audit((A[["x", "town"]].to_numpy(), Y)), ("Column 1", "row 0")),
    ("complex features", audit((X + 1j, Y)), ("Column 0", "members")),
    ("ragged features", audit(([[1.0], [1.0, 2.0]], [0, 1])), ("different lengths", "members")),
    ("infinite features", audit((changed(X, (4, 1), INF), Y)), ("Column 1", "row 4")),
    ("a gap in the features", audit((changed(X, (4, 1), NAN), Y)), ("Column 1", "row 4")),
    ("a gap in the labels", audit((X, changed(Y, 7, NAN, float))), ("label", "row 7")),
    ("labels of two kinds", audit((X, changed(Y, 7, "one", object))), ("'one'", "row 7")),
    ("a label nobody knows", audit((X, Y), (V, changed(W, 5, 9))), ("9", "row 5", "nonmembers")),
    ("one class", audit((X, 0 * Y)), ("60 members", "0")),
    ("columns of one side", audit((X, Y), (np.c_[V, V], W)), ("4 features", "2 features")),
    ("a frame without label=", audit(A, B, model=fitted()), ("members", "label=")),
    ("a frame without that column", audit(A, B, model=fitted(), label="yy"), ("'yy'",)),
    ("columns of one name", audit(pd.concat([A, A["x"]], axis=1), B, model=fitted(), label="y"),
     ("two columns named 'x'",)),
    ("groups in arrays", audit(groups=["sex"]), ("members", "'sex'")),
    ("one group as a text", audit(A, B, model=fitted(), label="y", groups="town"), ("'town'",)),
    ("a unit that Records lack", audit(ls.Records(X, Y), ls.Records(V, W), unit="who"), ("'who'",)),
    ("units of one side", audit(ls.Records(X, Y, unit=np.arange(60)), ls.Records(V, W)),
     ("one side", "unit")),
    ("a frame and an array", audit((A[["x", "z"]], Y), (V, W)), ("DataFrame", "array")),
    ("sparse features", audit((csr_array(X), Y)), ("sparse",)),
    ("a seed with a fraction", audit(seed=0.5), ("seed", "0.5")),
    ("a seed below 0", audit(seed=-1), ("seed", "-1")),
    ("a seed that is True", audit(seed=True), ("seed", "True")),
    ("a limit of 2", audit(limit=2), ("limit", "2")),
    ("a prior of 0", audit(prior=0), ("prior", "0")),
    ("an overlap below 0", audit(max_overlap=-0.1), ("max_overlap", "-0.1")),
    ("half a shadow model", audit(shadows=0.5), ("shadow models", "0.5")),
    ("workers without shadows", audit(workers=2), ("workers=", "shadows=")),
    ("a recipe without shadows", audit(recipe="tree"), ("recipe=", "shadows=")),
    ("a recipe nobody knows", audit(recipe="tre", shadows=2), ("'tre'", "'tree'")),
    ("a recipe of another task", audit(recipe="ridge", shadows=2), ("'ridge'", "regression")),
    ("shadows of a function", audit(model=model().predict_proba, shadows=2), ("recipe=",)),
    ("no workers", audit(shadows=2, workers=0), ("workers", "0")),
    ("a backend nobody knows", audit(shadows=2, backend="spark"), ("'spark'",)),
    ("other classes", audit(classes=np.array([0, 1, 2])), ("classes",)),
    ("another task", audit(task="regression"), ("task='regression'",)),
    ("attacks as a text", lambda: ls.audit(model(), (X, Y), (V, W), attacks="loss"), ("list",)),
    ("no attacks", lambda: ls.audit(model(), (X, Y), (V, W), attacks=[]), ("attacks",)),
    ("an attack twice", lambda: ls.audit(model(), (X, Y), (V, W), attacks=["loss", "loss"]),
     ("'loss'",)),
    ("a channel nobody knows", audit(channels=["los"]), ("'los'", "'loss'")),
    ("a file for the folder", audit(out=__file__), ("a file is in the way",)),
    *((f"a function that answers {kind}", audit(model=Answering(kind)), SAID[kind])
      for kind in ANSWERS if kind != "three-classes"),
]  # fmt: skip

PROBABILITIES = P[["no", "yes"]].to_numpy()
LABELS = (P["label"] == "yes").to_numpy().astype(int)


def predictions(p: Any = PROBABILITIES, y: Any = LABELS, **options: Any) -> Call:
    other = Q[["no", "yes"]].to_numpy(), (Q["label"] == "yes").to_numpy().astype(int)
    return lambda: ls.audit_predictions(p, y, *other, attacks=["loss"], **options)


PREDICTIONS: Cases = [
    ("below 0", predictions(changed(PROBABILITIES, 3, [-0.5, 1.5])), ("members", "row 3", "-0.5")),
    ("not summing to 1", predictions(PROBABILITIES * 2), ("members", "row 0", "probabilities")),
    ("a gap", predictions(changed(PROBABILITIES, (9, 0), NAN)), ("members", "row 9", "nan")),
    ("infinite", predictions(changed(PROBABILITIES, (9, 0), INF)), ("Column 0", "row 9")),
    ("texts", predictions(PROBABILITIES.astype(str)), ("Column 0", "row 0", "members")),
    ("one above 1", predictions(PROBABILITIES[:, 0] + 1), ("members", "row 0")),
    ("three columns", predictions(np.c_[PROBABILITIES, 0 * LABELS]), ("(60, 2)", "3 classes")),
    ("fewer labels", predictions(y=LABELS[1:]), ("members", "60", "59")),
    ("labels beyond the columns", predictions(y=LABELS + 5), ("2 probabilities", "different")),
    ("a label that is no class", predictions(classes=np.array([0, 7])), ("1", "unknown")),
    ("one class", predictions(y=0 * LABELS), ("60 members",)),
    ("a cube", predictions(PROBABILITIES.reshape(60, 2, 1)), ("(60, 2, 1)",)),
    ("groups of one side", predictions(member_groups={"sex": LABELS}), ("members", "'sex'")),
    ("groups that are shorter", predictions(member_groups={"sex": LABELS[1:]}), ("'sex'", "59")),
    ("units of one side", predictions(member_units=np.arange(60)), ("one side", "unit")),
    ("a seed of text", predictions(seed="0"), ("seed", "'0'")),
]  # fmt: skip

M2, S2 = np.zeros(2), np.eye(2)
SCORES, IN = np.arange(40.0).reshape(8, 5), np.arange(40).reshape(8, 5) % 2 == 0
CHANCES, TEXTS = (SCORES + 1) / 41, np.full((8, 5), "a")
ONE = np.linspace(0.1, 0.9, 8)
TWO = np.arange(8) % 2 == 0


NUMBERS: Cases = [
    ("no such data set", lambda: ls.load_dataset("adlut"), ("'adlut'", "'adult'")),
    ("no such option", lambda: ls.load_dataset("adult", encode=1), ("'encode'", "encoding")),
    ("a wrong kind of option", lambda: ls.load_dataset("synthetic", n="9"), ("'9'", "whole")),
    ("an option below 0", lambda: ls.load_dataset("synthetic", n=-9), ("-9",)),
    ("no data file", lambda: ls.load_dataset("mnist", folder="nowhere"), ("mnist.npz", "nowhere")),
    ("means of unequal length", lambda: ls.leakage.gaussian_kl(M2, S2, np.zeros(3), S2), ("3",)),
    ("a covariance that is none", lambda: ls.leakage.gaussian_kl(M2, -S2, M2, S2), ("covariance",)),
    ("a covariance of a wrong shape", lambda: ls.leakage.gaussian_kl(M2, np.eye(3), M2, S2),
     ("(3, 3)",)),
    ("a mean with a gap", lambda: ls.leakage.gaussian_kl([0, NAN], S2, M2, S2), ("finite",)),
    ("means of texts", lambda: ls.leakage.gaussian_kl(["a", "b"], S2, M2, S2), ("numbers",)),
    ("an order of 0", lambda: ls.leakage.renyi_divergence(M2, S2, M2, S2, 0), ("order", "0")),
    ("an order with a gap", lambda: ls.leakage.renyi_divergence(M2, S2, M2, S2, NAN), ("order",)),
    ("a prior above 1", lambda: ls.leakage.mutual_information(M2, S2, M2, S2, prior=2), ("prior",)),
    ("one sided variation", lambda: ls.leakage.total_variation(M2, S2, [0.0], [[1.0]]), ("1",)),
    ("an epsilon of 0", lambda: ls.defenses.gaussian_sigma(0, 1e-5, 1), ("epsilon", "0")),
    ("an epsilon of text", lambda: ls.defenses.gaussian_sigma("1", 1e-5, 1), ("epsilon", "'1'")),
    ("a delta of 1", lambda: ls.defenses.gaussian_sigma(1, 1, 1), ("delta", "1")),
    ("a sensitivity below 0", lambda: ls.defenses.gaussian_sigma(1, 1e-5, -1), ("sensitivity",)),
    ("a method nobody knows", lambda: ls.defenses.gaussian_sigma(1, 1e-5, 1, method="analytical"),
     ("'analytical'", "'analytic'")),
    ("a classical epsilon", lambda: ls.defenses.gaussian_sigma(2, 1e-5, 1, method="classical"),
     ("epsilon", "2")),
    ("as many draws as records", lambda: ls.exact.ridge_leakage(X, Y, 60), ("60",)),
    ("no draws", lambda: ls.exact.ridge_leakage(X, Y, 30, draws=0), ("draws", "0")),
    ("a penalty below 0", lambda: ls.exact.ridge_leakage(X, Y, 30, l2=-1), ("l2", "-1")),
    ("noise below 0", lambda: ls.exact.ridge_leakage(X, Y, 30, noise=-1), ("noise", "-1")),
    ("records beyond the last", lambda: ls.exact.ridge_leakage(X, Y, 30, records=[99]), ("99",)),
    ("a gap", lambda: ls.exact.ridge_leakage(changed(X, (2, 1), NAN), Y, 30), ("2",)),
    ("labels that are shorter", lambda: ls.exact.ridge_leakage(X, Y[1:], 30), ("60", "59")),
    ("one class to leave out", lambda: ls.exact.leave_one_out(X, 0 * Y), ("2 classes",)),
    ("l2 below 0", lambda: ls.exact.leave_one_out(X, Y, l2=-1), ("l2", "-1")),
    ("a family nobody knows", lambda: ls.exact.leave_one_out(X, Y, family="binom"), ("'binom'",)),
    ("texts to leave out", lambda: ls.exact.leave_one_out(A[["town"]], Y), ("features", "object")),
    ("fewer weights", lambda: ls.exact.leave_one_out(X, Y, sample_weight=[1.0]), ("60",)),
    ("records of another fit", lambda: ls.exact.leave_one_out_of(model(), np.c_[X, X], Y), ("4",)),
    ("a model that is none", lambda: ls.exact.leave_one_out_of("ridge", X, Y), ("str",)),
    ("a model without a fit", lambda: ls.exact.leave_one_out_of(LogisticRegression(), X, Y),
     ("fitted",)),
    ("scores of another shape", lambda: ls.attacks.lira(SCORES, IN[:, 1:], SCORES[0]), ("(8, 4)",)),
    ("one row of scores", lambda: ls.attacks.lira(SCORES[0], IN, SCORES[0]), ("(5,)",)),
    ("scores with a gap", lambda: ls.attacks.lira(changed(SCORES, (1, 1), NAN), IN, SCORES[0]),
     ("finite",)),
    ("fewer targets", lambda: ls.attacks.lira(SCORES, IN, SCORES[0, 1:]), ("(4,)",)),
    ("members of no model", lambda: ls.attacks.lira(SCORES, IN & False, SCORES[0]), ("5 records",)),
    ("membership as texts", lambda: ls.attacks.lira(SCORES, TEXTS, SCORES[0]), ("member",)),
    ("scores of texts", lambda: ls.attacks.lira(TEXTS, IN, SCORES[0]), ("scores",)),
    ("targets of texts", lambda: ls.attacks.lira(SCORES, IN, ["a"] * 5), ("target",)),
    ("an a of text", lambda: ls.attacks.rmia(CHANCES, IN, CHANCES[0], a="b"), ("'b'",)),
    ("a curve of texts", lambda: ls.metrics.roc(["a", "b"], [True, False]), ("Scores",)),
    ("a curve of a text prior", lambda: ls.metrics.roc(ONE, TWO, threshold=0.5, prior="b"),
     ("prior", "'b'")),
    ("samples of texts", lambda: ls.leakage.knn_divergence([["a"]], [["b"]]), ("numbers",)),
    ("a variation of texts", lambda: ls.leakage.total_variation("a", S2, M2, S2), ("numbers",)),
    ("a ragged covariance", lambda: ls.leakage.gaussian_kl(M2, [[1], [1, 2]], M2, S2),
     ("first covariance",)),
    ("ridge of texts", lambda: ls.exact.ridge_leakage(A[["town"]].to_numpy(), Y, 30), ("numbers",)),
    ("ridge of text labels", lambda: ls.exact.ridge_leakage(X, A["y"], 30), ("numbers",)),
    ("a gamma of 0", lambda: ls.attacks.rmia(CHANCES, IN, CHANCES[0], gamma=0), ("gamma", "0")),
    ("a gamma of text", lambda: ls.attacks.rmia(CHANCES, IN, CHANCES[0], gamma="2"), ("gamma",)),
    ("an a above 1", lambda: ls.attacks.rmia(CHANCES, IN, CHANCES[0], a=2), ("a must be", "2")),
    ("probabilities above 1", lambda: ls.attacks.rmia(CHANCES + 1, IN, CHANCES[0]), ("at most 1",)),
    ("one population", lambda: ls.attacks.rmia(CHANCES, IN, CHANCES[0], population=[CHANCES]),
     ("population",)),
    ("one side of scores", lambda: ls.metrics.roc(ONE, TWO & False), ("member",)),
    ("scores of a curve with a gap", lambda: ls.metrics.roc(changed(ONE, 1, NAN), TWO), ("1",)),
    ("fewer memberships", lambda: ls.metrics.roc(ONE, TWO[1:]), ("8", "7")),
    ("a matrix of scores", lambda: ls.metrics.roc(SCORES, IN), ("(8, 5)",)),
    ("a prior of 2", lambda: ls.metrics.roc(ONE, TWO, threshold=0.5, prior=2), ("prior", "2")),
    ("a threshold that is no number", lambda: ls.metrics.roc(ONE, TWO, threshold=NAN),
     ("threshold",)),
    ("membership of three kinds", lambda: ls.metrics.roc(ONE, np.arange(8)), ("membership",)),
]  # fmt: skip


def compare(defenses: Any = ("noise:1",), **options: Any) -> Call:
    recipe = options.pop("recipe", "logistic")
    pool = np.r_[X, V], np.r_[Y, W]
    return lambda: ls.compare(
        recipe, options.pop("records", pool), defenses, seeds=1, workers=1, **options
    )


def checked(**limits: Any) -> Call:
    from bad_input.reading import report_text

    return lambda: ls.check(ls.Report(json.loads(report_text())), **limits)


def pruned() -> object:
    from leakscope.networks import MLP

    return ls.defenses.Pruning(budgets={"layers.linear1": 10**6}).kept(MLP((2, 3, 2)))


def pruned_elsewhere() -> object:
    from leakscope.networks import MLP

    return ls.defenses.Pruning(budgets={"layers.linear9": 1}).kept(MLP((2, 3, 2)))


OTHERS: Cases = [
    ("defenses as a text", compare("noise:1"), ("'noise:1'", "list")),
    ("a defense that is a number", compare([3]), ("3", "no defense")),
    ("no defenses", compare([]), ("no defense",)),
    ("a recipe that is a number", compare(recipe=3), ("int",)),
    ("records of numbers", compare(records=(X, X[:, 0])), ("numbers",)),
    ("too many members", compare(members=99), ("99", "40")),
    ("half a seed", compare(seed=0.5), ("seed", "0.5")),
    ("a folder that is a file", compare(out=__file__), ("a file is in the way",)),
    ("a budget beyond its layer", pruned, ("layers.linear1", "1000000")),
    ("a budget of no layer", pruned_elsewhere, ("layers.linear9",)),
    ("a budget below 0", lambda: ls.defenses.Pruning(budgets={"a": -1}), ("'a'", "-1")),
    ("rhos that fall", lambda: ls.defenses.Pruning(rhos=(1.0, 0.1)), ("rhos",)),
    ("a gamma below 0", lambda: ls.defenses.MinMax(gamma=-1), ("gamma", "-1")),
    ("an accountant nobody knows", lambda: ls.defenses.DPSGD(accountant="rpd"), ("'rpd'", "'rdp'")),
    ("a limit of text", checked(max_advantage="0.1"), ("max_advantage", "'0.1'")),
    ("a limit that is True", checked(max_auc=True), ("max_auc", "True")),
    ("a required attack nobody knows", checked(require=["liar"]), ("'liar'", "'lira'")),
    ("a report that is a number", lambda: ls.check(3), ("int",)),
    ("a report that is not there", lambda: ls.check("nowhere.json"), ("nowhere.json",)),
    ("a report that is a folder", lambda: ls.Report.load("nowhere"), ("nowhere",)),
    ("a service without an address", lambda: ls.HttpModel("localhost"), ("'localhost'",)),
    ("a service of no batches", lambda: ls.HttpModel("http://h/x", batch_size=0), ("batch_size",)),
    ("records of an odd group", lambda: ls.Records(X, Y, groups=["sex"]), ("groups", "list")),
    ("a model file that is not there", lambda: ls.models.load_model("nowhere"), ("'nowhere'",)),
    ("a name that is taken", lambda: ls.register("attack", "loss")(Answering), ("'loss'",)),
    ("a kind that nobody knows", lambda: ls.register("atack", "x"), ("'atack'", "'attack'")),
    ("roles of another shape", lambda: ls.trials.run_trials("tree", ls.Records(X, Y), IN, ["loss"]),
     ("(8, 5)", "60")),
    ("no channels", lambda: ls.trials.run_trials(
        "tree", ls.Records(X, Y), np.ones((2, 60)), []), ("channels",)),
]  # fmt: skip

TABLES = {"audit": AUDIT, "predictions": PREDICTIONS, "numbers": NUMBERS, "others": OTHERS}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        pytest.param(call, told, id=f"{table}: {name}")
        for table, cases in TABLES.items()
        for name, call, told in cases
    ],
)
def test_one_sentence(
    call: Call, told: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    with pytest.raises(ls.LeakscopeError) as caught:
        call()
    check_sentence(str(caught.value), told)
    assert snapshot(tmp_path) == {}
