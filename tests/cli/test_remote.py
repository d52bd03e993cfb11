from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.cli.remote import model_at
from leakscope.errors import InputError
from leakscope.models import HttpModel
from serving import Reply, Served, as_json, predicting, serving

Run = Callable[..., Any]
Files = tuple[Path, Path]
FEATURES = ["height", "weight"]


@pytest.fixture
def numbers(tables: Files) -> Files:
    """The two files with numbers as features alone."""
    for path in tables:
        pd.read_csv(path)[[*FEATURES, "answer"]].to_csv(path, index=False)
    return tables


@pytest.fixture
def served(numbers: Files) -> Iterator[Served]:
    members = pd.read_csv(numbers[0])
    model = LogisticRegression().fit(members[FEATURES].to_numpy(), members["answer"])
    with serving(predicting(lambda rows: model.predict_proba(rows).tolist())) as one:
        yield one


def words(numbers: Files, served: Served, *more: object) -> tuple[object, ...]:
    own = ("--members", numbers[0], "--nonmembers", numbers[1], "--label", "answer")
    return "audit", *own, "--model-url", served.url, *more


def test_a_model_at_an_address_is_audited(
    run: Run, numbers: Files, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "s3cret")
    options = "token_env=SERVICE_TOKEN,batch_size=50,budget=400"
    ran = run(*words(numbers, served, "--attacks", "loss", "--url-options", options, "--json"))
    assert ran.code == 0, ran.stderr
    assert ran.json["cost"]["queries"] == 160
    # Five of each side are tried first, to say at once what is wrong.
    assert [len(body["instances"]) for body in served.bodies] == [5, 5, 50, 50, 50]
    assert served.headers[0]["Authorization"] == "Bearer s3cret"
    assert ran.json["target"]["classes"] == ["no", "yes"]
    assert "SERVICE_TOKEN" in ran.json["command"]
    assert "s3cret" not in ran.stdout + ran.stderr


def test_a_budget_that_is_too_small_is_an_error(run: Run, numbers: Files, served: Served) -> None:
    ran = run(*words(numbers, served, "--url-options", "budget=7"))
    assert ran.code == 2
    assert "about 160 records at least" in ran.stderr
    assert served.bodies == []


def test_a_dead_address_is_one_sentence(run: Run, numbers: Files) -> None:
    nobody = Served("http://127.0.0.1:1/predict")
    ran = run(*words(numbers, nobody, "--url-options", "retries=0"))
    assert ran.code == 2
    assert ran.stderr.splitlines()[-1].startswith(
        "Error: The model at http://127.0.0.1:1/predict gave no answer in 1 attempt ("
    )


def test_a_recipe_beside_it_is_for_shadow_models(
    run: Run, calls: Any, numbers: Files, served: Served
) -> None:
    ran = run(*words(numbers, served, "--recipe", "logistic"))
    assert ran.code == 2
    assert "--recipe beside --model-url says how to train shadow models" in ran.stderr
    assert run(*words(numbers, served, "--recipe", "logistic", "--shadows", 4)).code == 0
    [(_, (model, *_), named)] = calls
    assert isinstance(model, HttpModel)
    assert named["recipe"].name == "logistic"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--model", "m.skops"], "--model and --model-url contradict each other; leave one out"),
        (["--url-options", "budgett=5"], "no option of --url-options named 'budgett'; did you"),
        (["--url-options", "clock=5"], "There is no option of --url-options named 'clock'"),
        (["--url-options", "budget"], "where NAME=VALUE is needed; see `leakscope audit --help`"),
        (["--url-options", "budget=few"], "option budget must be a whole number"),
    ],
)
def test_wrong_options_are_one_sentence(
    run: Run, numbers: Files, more: list[str], sentence: str
) -> None:
    ran = run(*words(numbers, Served("http://127.0.0.1:1/"), *more))
    assert ran.code == 2
    assert sentence in ran.stderr


def test_an_address_needs_records_and_its_options_an_address(run: Run) -> None:
    ran = run("audit", "--model-url", "http://127.0.0.1:1/")
    assert ran.stderr == (
        "Error: --model-url is given without --members, and a model does not tell which records it "
        "was trained on; add it\n"
    )
    ran = run("audit", "--url-options", "budget=5")
    assert ran.stderr == "Error: --url-options is given without --model-url; add it\n"


def test_an_address_with_a_password_is_not_repeated(run: Run, numbers: Files) -> None:
    ran = run(*words(numbers, Served("http://me:hush@127.0.0.1:1/")))
    assert ran.code == 2
    assert "token_env" in ran.stderr
    assert "hush" not in ran.stderr


SECRETS = ("c0de", "pw1234", "fr4gment", "s3cret")
QUERY = "?code=c0de-of-it&pwd=pw1234&version=2#fr4gment"


def test_nothing_after_the_path_of_an_address_is_stored(
    run: Run,
    numbers: Files,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "s3cret-token")
    served.url += QUERY
    options = "token_env=SERVICE_TOKEN"
    for number, more in enumerate(([], ["--redact"], ["--json"])):
        out = tmp_path / f"out{number}"
        shared = ("--attacks", "loss", "--url-options", options, "--out", out, "-vv", "--debug")
        ran = run(*words(numbers, served, *shared, *more))
        assert ran.code == 0, ran.stderr
        written = [path.read_text("utf-8") for path in out.rglob("*") if path.is_file()]
        assert len(written) >= 2
        for text in (ran.stdout, ran.stderr, *written):
            assert not [secret for secret in SECRETS if secret in text]
    assert len(served.paths) > 3
    assert {*served.paths} == {"/predict?code=c0de-of-it&pwd=pw1234&version=2"}


@pytest.mark.parametrize("status", [200, 400])
def test_nor_is_it_in_an_error(
    run: Run, numbers: Files, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "s3cret-token")

    def echo(*_: Any) -> Reply:
        said = f"{served.url} with Bearer s3cret-token and pw1234: {SECRETS}"
        return as_json({"predictions": [[said]] * 5, said: 1, "error": said}, status)

    with serving(echo) as served:
        served.url += QUERY
        for more in ("predictions=other,", ""):
            options = f"{more}token_env=SERVICE_TOKEN"
            ran = run(*words(numbers, served, "--url-options", options, "--debug", "-vv"))
            assert ran.code == 2
            assert "Traceback" in ran.stderr
            left = ran.stderr.replace(str(SECRETS), "")
            assert not [word for word in ("c0de-of-it", "s3cret-token", "pw1234") if word in left]


def test_a_header_that_cannot_be_sent_is_refused_without_its_value() -> None:
    for headers in (
        {"X": "hush\nY: 1"},
        {"X": "h\u00fcsh"},
        {"X Y": "hush"},
        {"": "hush"},
        {"X": 7},
    ):
        with pytest.raises(InputError, match=r"[Hh]eader") as caught:
            HttpModel("http://127.0.0.1:1/", headers=headers)  # type: ignore[arg-type]
        assert "sh" not in str(caught.value).replace("dash", "")


def test_options_are_read_with_their_types() -> None:
    text = 'budget=5,requests_per_second=0.5,form=objects,predictions="",token_env=A'
    found = model_at("http://127.0.0.1:1/", text)
    assert (found.budget, found.requests_per_second, found.form) == (5, 0.5, "objects")
    assert (found.predictions, found.token_env) == ("", "A")
    assert model_at("http://127.0.0.1:1/", None).budget is None
    with pytest.raises(InputError):
        model_at("nowhere", None)
