from __future__ import annotations

from typing import Any

import pytest

from leakscope.errors import InputError, ModelError, OracleBudgetError
from leakscope.models.service import Service, Spent
from serving import FakeTime, Reply, as_json, serving

NUMBERS = [str(number) for number in range(10)]


def asked(service: Service, records: list[str] = NUMBERS) -> list[list[str]]:
    return [batch for batch, _ in service.send(records)]


def test_records_go_in_batches_under_the_key() -> None:
    with serving(lambda *_: as_json("fine")) as served:
        service = Service(served.url, batch_size=4)
        answers = list(service.send(NUMBERS))
    assert [batch for batch, _ in answers] == [NUMBERS[:4], NUMBERS[4:8], NUMBERS[8:]]
    assert [answer for _, answer in answers] == ["fine"] * 3
    assert served.bodies == [
        {"instances": [0, 1, 2, 3]},
        {"instances": [4, 5, 6, 7]},
        {"instances": [8, 9]},
    ]
    assert all(one["Content-Type"] == "application/json" for one in served.headers)


@pytest.mark.parametrize(("key", "body"), [('"odd"', {'"odd"': [1]}), ("", [1])])
def test_the_key_may_be_another_or_none(key: str, body: Any) -> None:
    with serving(lambda *_: as_json(0)) as served:
        asked(Service(served.url, instances=key), ["1"])
    assert served.bodies == [body]


def test_what_was_asked_is_counted() -> None:
    fake = FakeTime()

    def answer(_: Any, before: int) -> Reply:
        fake.time += 0.25
        return as_json(0, 503 if before == 1 else 200)

    with serving(answer) as served:
        service = Service(served.url, batch_size=5, clock=fake.clock)
        before = service.spent.copy()
        asked(service)
    assert (service.spent.records, service.spent.requests, service.spent.retries) == (10, 2, 1)
    assert service.spent.seconds == pytest.approx(3 * 0.25 + 0.25)  # three answers and one wait
    assert before == Spent()
    assert service.spent.since(Spent(4, 1, 1, 0.5)) == Spent(6, 1, 0, 0.5)


def test_records_that_got_no_answer_were_asked_about_all_the_same() -> None:
    with serving(lambda *_: Reply(b"no", 404)) as served:
        service = Service(served.url)
        with pytest.raises(ModelError):
            asked(service)
    assert (service.spent.records, service.spent.requests) == (10, 0)


def test_beyond_the_budget_nothing_is_sent() -> None:
    with serving(lambda *_: as_json(0)) as served:
        service = Service(served.url, budget=12)
        assert service.remaining == 12
        asked(service)
        assert service.remaining == 2
        with pytest.raises(OracleBudgetError) as caught:
            asked(service, NUMBERS[:3])
        asked(service, NUMBERS[:2])
    assert str(caught.value) == (
        f"the model at {served.url} was asked about 10 of the 12 records that the budget allows, "
        "and 3 more are needed now; give a budget of at least 13, or ask about fewer"
    )
    assert len(served.bodies) == 2
    assert service.remaining == 0
    assert Service(served.url).remaining is None


def test_the_rate_of_requests_is_kept_by_retries_too() -> None:
    fake = FakeTime()
    with serving(lambda _, before: as_json(0, 503 if before == 1 else 200)) as served:
        asked(Service(served.url, batch_size=5, requests_per_second=0.1, clock=fake.clock))
    # The wait before trying again is part of the ten seconds.
    assert fake.slept == pytest.approx([10.0, 0.25, 9.75])


def test_the_rate_of_records_is_kept() -> None:
    fake = FakeTime()
    with serving(lambda *_: as_json(0)) as served:
        asked(Service(served.url, batch_size=4, records_per_second=2.0, clock=fake.clock))
    assert fake.slept == pytest.approx([2.0, 1.0])


def test_the_stricter_of_two_rates_counts() -> None:
    fake = FakeTime()
    with serving(lambda *_: as_json(0)) as served:
        options: dict[str, Any] = {"requests_per_second": 10, "records_per_second": 1}
        asked(Service(served.url, batch_size=5, clock=fake.clock, **options))
    assert sum(fake.slept) == pytest.approx(5.0)


def test_a_token_comes_from_the_environment_and_is_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HUSH", " s3cret\n")
    with serving(lambda *_: as_json(0)) as served:
        service = Service(f"{served.url}?c=s3cret", token_env="HUSH", headers={"X-Team": "audit"})
        asked(service, ["1"])
        other = Service(served.url, token_env="HUSH", token_header="X-Api-Key")
        asked(other, ["1"])
    first, second = served.headers
    assert first["Authorization"] == "Bearer s3cret"
    assert first["X-Team"] == "audit"
    assert second["X-Api-Key"] == "s3cret"
    assert "Authorization" not in second
    assert "s3cret" not in repr(service) + str(vars(service)["spent"]) + service.__name__


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "'HUSH' is not set, or is empty"),
        ("  ", "'HUSH' is not set, or is empty"),
        ("s3cret\r\nX-Evil: 1", "'HUSH' holds characters that a header cannot"),
        ("s3crét", "'HUSH' holds characters that a header cannot"),
    ],
)
def test_a_token_that_cannot_be_sent_is_refused_without_being_told(
    value: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUSH", raising=False)
    if value is not None:
        monkeypatch.setenv("HUSH", value)
    with pytest.raises(InputError, match=sentence) as caught:
        asked(Service("http://127.0.0.1:1/", token_env="HUSH"), ["1"])
    assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number of at least 1"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"timeout": 0}, "timeout must be a finite number above 0"),
        ({"largest_answer": 0}, "largest_answer must be a whole number of at least 1"),
        ({"requests_per_second": 0}, "requests_per_second must be a finite number above 0"),
        ({"records_per_second": "5"}, "records_per_second must be a finite number above 0"),
        ({"budget": -1}, "budget must be a whole number of at least 0"),
        ({"url": "nowhere"}, "is not one of http:// or https://"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Service(**({"url": "http://127.0.0.1:1/"} | options))


def test_a_list_is_found_under_its_key_or_by_itself() -> None:
    service = Service("http://127.0.0.1:1/")
    assert service.listed_under({"a": [1, 2], "b": 0}, "a", 2) == [1, 2]
    assert service.listed_under([1, 2], "", 2) == [1, 2]


@pytest.mark.parametrize(
    ("answer", "key", "sentence"),
    [
        ({"b": [1], "c" * 99: 2}, "a", "an object with the keys 'b', 'cccc"),
        ({}, "a", "answered with a JSON object, where the key 'a' is needed"),
        ([1], "a", "answered with a JSON list, where the key 'a' is needed"),
        (None, "a", "answered with a JSON null, where"),
        ("x", "a", "answered with a JSON text, where"),
        (True, "a", "answered with a JSON truth value, where"),
        (1.5, "a", "answered with a JSON number, where"),
        ({"a": {}}, "a", "a JSON object where a list with an entry per record is needed"),
        ({}, "", "a JSON object where a list with an entry per record is needed"),
        ({"a": [1, 2]}, "a", "answered with 2 entries for 1 records; it must give one for each"),
        ([], "", "answered with 0 entries for 1 records"),
    ],
)
def test_any_other_answer_is_one_sentence(answer: Any, key: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        Service("http://127.0.0.1:1/").listed_under(answer, key, 1)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 250
