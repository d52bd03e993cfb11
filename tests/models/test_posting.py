"""Every way in which a service can fail to answer, on a real server."""

from __future__ import annotations

import base64
import html
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from leakscope.errors import InputError, ModelError
from leakscope.models.pacing import Clock
from leakscope.models.posting import Poster, checked_address
from serving import FakeTime, Reply, as_json, serving


def poster(url: str, fake: FakeTime | None = None, **options: Any) -> Poster:
    usual: dict[str, Any] = {
        "headers": {}, "timeout": 5.0, "retries": 2, "largest_answer": 10_000,
        "clock": Clock() if fake is None else fake.clock,
    }  # fmt: skip
    return Poster(url, **(usual | options))


def post(one: Poster) -> Any:
    return one.post('{"instances": [1]}', lambda: None)


def test_an_answer_comes_back_decoded() -> None:
    with serving(lambda asked, _: as_json({"got": asked})) as served:
        assert post(poster(served.url)) == {"got": {"instances": [1]}}
    assert len(served.bodies) == 1


def test_every_attempt_keeps_the_rate() -> None:
    kept = []
    fake = FakeTime()
    with serving(lambda _, before: as_json({}, 503 if before < 2 else 200)) as served:
        one = poster(served.url, fake)
        one.post("{}", lambda: kept.append(1))
    assert len(kept) == len(served.bodies) == 3
    assert one.retried == 2


def test_500_twice_and_then_fine() -> None:
    fake = FakeTime(draw=0.5)
    with serving(lambda _, before: as_json([1], 500 if before < 2 else 200)) as served:
        one = poster(served.url, fake)
        assert post(one) == [1]
    assert fake.slept == pytest.approx([0.375, 0.75])
    assert one.retried == 2


def test_429_is_waited_for_as_long_as_the_service_asks() -> None:
    fake = FakeTime()

    def answer(_: Any, before: int) -> Reply:
        return as_json([2], 429, Retry_After="7") if before == 0 else as_json([2])

    with serving(answer) as served:
        assert post(poster(served.url, fake)) == [2]
    assert fake.slept == [7.0]


def test_a_pause_of_an_hour_is_not_waited_for() -> None:
    fake = FakeTime()
    with (
        serving(lambda *_: as_json({}, 429, Retry_After="3600")) as served,
        pytest.raises(ModelError, match="asks to be left alone for 3,600 seconds"),
    ):
        post(poster(served.url, fake))
    assert fake.slept == []
    assert len(served.bodies) == 1


def test_a_service_that_stays_broken_is_given_up() -> None:
    fake = FakeTime()
    reply = as_json({"error": "out\nof [red]memory\x1b"}, 500)
    with (
        serving(lambda *_: reply) as served,
        pytest.raises(ModelError) as caught,
    ):
        post(poster(served.url, fake))
    assert "gave no answer in 3 attempts (status 500: out of [red]memory�)" in str(caught.value)
    assert served.url in str(caught.value)
    assert len(served.bodies) == 3


def test_a_dead_server_is_one_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(ModelError, match=r"in 1 attempt \(.*refused\); see that it runs"):
            post(poster(url, FakeTime(), retries=0))


def test_a_server_that_does_not_answer_in_time_is_given_up() -> None:
    waiting = threading.Event()

    def answer(*_: Any) -> Reply:
        waiting.wait(5)
        return as_json({})

    start = time.monotonic()
    with serving(answer) as served:
        with pytest.raises(ModelError, match=r"no answer within 0\.2 seconds"):
            post(poster(served.url, timeout=0.2, retries=0))
        waiting.set()
    assert time.monotonic() - start < 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "start_of_answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nX:",
    ],
    ids=["body", "status", "header"],
)
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(start_of_answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(start_of_answer)
                with suppress(OSError):
                    while not over.wait(0.05):
                        connection.sendall(b" ")

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        start = time.monotonic()
        with pytest.raises(ModelError, match=r"no answer within 0\.4 seconds"):
            post(poster(url, timeout=0.4, retries=0))
        assert time.monotonic() - start < 3
        over.set()
        thread.join()


def test_a_host_that_takes_no_connection_in_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(*_: Any, **__: Any) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", slow)
    with pytest.raises(ModelError, match=r"\(no answer within 5 seconds\)"):
        post(poster("http://127.0.0.1:1/", retries=0))


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    fake = FakeTime()

    def answer(_: Any, before: int) -> Reply:
        return Reply(b"[1", length=400) if before == 0 else as_json([3])

    with serving(answer) as served:
        assert post(poster(served.url, fake)) == [3]
    assert len(fake.slept) == 1


def test_a_connection_that_is_closed_without_an_answer_is_tried_again() -> None:
    def answer(_: Any, before: int) -> Reply:
        if before == 0:
            raise ConnectionAbortedError  # the handler ends, and with it the connection
        return as_json([4])

    fake = FakeTime()
    with serving(answer) as served:
        assert post(poster(served.url, fake)) == [4]
    assert len(fake.slept) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>hello</html>", "Expecting value"),
        (b"", "Expecting value"),
        (b'{"predictions": [NaN]}', "NaN is no number of JSON"),
        (b'{"predictions": [-Infinity]}', "-Infinity is no number of JSON"),
        (b"\xff\xfe", "can't decode byte"),
        (b"[" * 50_000, "recursion"),  # Python 3.13 goes ten thousand deep
        (b"1" * 9_000, "4300"),
    ],
)
def test_garbage_is_one_sentence(body: bytes, reason: str) -> None:
    with (
        serving(lambda *_: Reply(body)) as served,
        pytest.raises(ModelError, match="answered with what is not JSON") as caught,
    ):
        post(poster(served.url, largest_answer=100_000))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert len(served.bodies) == 1  # it would be the same again


@pytest.mark.parametrize("length", [None, -1])
def test_an_answer_larger_than_allowed_is_refused(length: int | None) -> None:
    # -1: the server does not say how much there is, so that it is seen only when it has come.
    with (
        serving(lambda *_: Reply(b"1" * 200_000, length=length)) as served,
        pytest.raises(ModelError, match="more than 10,000 bytes; give a smaller batch_size"),
    ):
        post(poster(served.url))
    assert len(served.bodies) == 1


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "9" * 5000}, {"Content-Length": "x"}])
def test_an_answer_without_its_size_is_read_to_the_end(headers: dict[str, str]) -> None:
    with serving(lambda *_: Reply(b"[1, 2]", headers=headers, length=-1)) as served:
        assert post(poster(served.url)) == [1, 2]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_records_are_sent_to_no_other_address(status: int) -> None:
    with serving(lambda *_: as_json([])) as other:
        reply = Reply(b"", status, {"Location": other.url})
        with (
            serving(lambda *_: reply) as served,
            pytest.raises(ModelError, match=rf"leads on to {other.url} \(status {status}\)"),
        ):
            post(poster(served.url))
    assert other.bodies == []


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "check the address, and the form of the records it takes"),
        (401, "name the environment variable of its token with token_env"),
        (403, "name the environment variable of its token with token_env"),
        (404, "check the address"),
        (413, "give a smaller batch_size"),
    ],
)
def test_a_refusal_is_not_tried_again(status: int, advice: str) -> None:
    with (
        serving(lambda *_: Reply(b"no such thing", status)) as served,
        pytest.raises(ModelError, match=advice) as caught,
    ):
        post(poster(served.url))
    assert f"(status {status}: no such thing)" in str(caught.value)
    assert len(served.bodies) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": {"code": 3}}'])
def test_what_a_refusal_says_may_be_anything(body: bytes) -> None:
    with serving(lambda *_: Reply(body, 400)) as served, pytest.raises(ModelError):
        post(poster(served.url))


def test_a_refusal_that_breaks_off_is_still_a_refusal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                head = b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n"
                connection.sendall(head + b"nonsense")

        thread = threading.Thread(target=refuse)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(ModelError, match=r"refused a request \(status 400\)"):
            post(poster(url, retries=0))
        thread.join()


def test_a_secret_that_the_service_repeats_is_not_told() -> None:
    reply = as_json({"error": "bad token s3cret! " + "x" * 400}, 400)
    with serving(lambda *_: reply) as served, pytest.raises(ModelError) as caught:
        post(poster(served.url, headers={"Authorization": "Bearer s3cret!"}))
    assert "s3cret" not in str(caught.value)
    assert "bad token …" in str(caught.value)
    assert len(str(caught.value)) < 400


TOKEN = "tok/en+9=8&7 i"
QUERY = "code=c0de%20value&pwd=pw12#fr4gment"


def spellings(secret: str) -> list[str]:
    """The secret as services repeat it."""
    return [
        secret,
        quote(secret, safe=""),
        quote(quote(secret, safe=""), safe=""),
        json.dumps(secret)[1:-1],
        html.escape(secret),
        "".join(f"\\u{ord(one):04x}" for one in secret),
        base64.b64encode(f"Bearer {secret}".encode()).decode(),
        base64.urlsafe_b64encode(f"ann:{secret}".encode()).decode(),
        secret[:5] + "\n" + secret[5:],
        secret.upper(),
    ]


def holds(text: str, secret: str) -> bool:
    """Whether half of the secret, in any of those spellings, is left in a text."""
    text = "".join(text.split()).lower()
    spelled = ["".join(one.split()).lower() for one in spellings(secret)]
    whole = [one[at : at + 8] for one in spelled for at in range(0, len(one) - 7)]
    own = [one for one in whole if one not in base64.b64encode(b"Bearer ann:").decode().lower()]
    common = {one for one in whole if one in "\\u0".join(["00"] * 9)}
    return any(one in text for one in {*own} - common)


def secretive(url: str) -> Poster:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Api-Key": "k3y-of-the-service"}
    return poster(f"{url}?{QUERY}", FakeTime(), headers=headers, retries=0)


def refusing(said: str, status: int = 400) -> Callable[[Any, int], Reply]:
    return lambda *_: Reply(said.encode(), status)


SECRETS = [TOKEN, "k3y-of-the-service", "c0de value", "fr4gment"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_no_spelling_of_a_secret_is_repeated(secret: str, status: int) -> None:
    for spelled in spellings(secret):
        for body in (f"no: '{spelled}'!", json.dumps({"error": {"why": spelled}})):
            if status == 200 and body.startswith("{"):
                continue
            with serving(refusing(body, status)) as served, pytest.raises(ModelError) as caught:
                post(secretive(served.url))
            said = "".join(traceback.format_exception(caught.value))
            assert not holds(said, secret), (spelled, said)


@pytest.mark.parametrize("before", [150, 190, 195, 199, 65_500])
@pytest.mark.parametrize("filler", ["x", " ", " \n"])
def test_a_secret_is_taken_out_before_the_text_is_cut(before: int, filler: str) -> None:
    body = (filler * before)[:before] + TOKEN + " " + "y" * 300
    with serving(refusing(body)) as served, pytest.raises(ModelError) as caught:
        post(secretive(served.url))
    assert TOKEN[:4] not in str(caught.value)


def test_a_refusal_that_comes_in_pieces_is_read_to_its_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            connection, _ = listening.accept()
            with connection:
                asked = b""
                while not asked.endswith(b"[1]}"):
                    asked += connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\nnot ")
                for part in (TOKEN[:6], TOKEN[6:] + " this"):
                    time.sleep(0.1)
                    connection.sendall(part.encode())

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(ModelError) as caught:
            post(secretive(f"http://127.0.0.1:{listening.getsockname()[1]}/"))
        thread.join()
    assert "(status 400: not … this)" in str(caught.value)


def test_a_refusal_that_breaks_off_is_not_quoted() -> None:
    body = f"not {TOKEN[:7]}".encode()
    reply = Reply(body, 400, length=len(body) + 50)
    with serving(lambda *_: reply) as served, pytest.raises(ModelError) as caught:
        post(secretive(served.url))
    assert "refused a request (status 400);" in str(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        f"http://else.where/{quote(TOKEN)}?next=1",
        "http://else.where/?signature=n3w-secret",
        "https://ann:n3w-secret@else.where/",
        "/login?state=n3w-secret#n3w-secret",
    ],
)
def test_a_redirect_is_named_without_its_secrets(place: str) -> None:
    reply = Reply(b"", 307, {"Location": place})
    with serving(lambda *_: reply) as served, pytest.raises(ModelError) as caught:
        post(secretive(served.url))
    assert "leads on to " in str(caught.value)
    assert "n3w" not in str(caught.value)
    assert not holds(str(caught.value), TOKEN)


@pytest.mark.parametrize(
    "start",
    [
        f"HTTP/1.1 400 Bad {TOKEN}\r\nContent-Length: 0\r\n\r\n",
        f"HTTP/1.1 500 Bad {TOKEN}\r\nContent-Length: 0\r\n\r\n",
        f"{TOKEN} is no status line\r\n\r\n",
        f"HTTP/{TOKEN} 200 OK\r\n\r\n",
    ],
)
def test_nor_is_a_traceback_a_way_out(start: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(start.encode())

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(ModelError) as caught:
            post(secretive(f"http://127.0.0.1:{listening.getsockname()[1]}/"))
        thread.join()
    assert not holds("".join(traceback.format_exception(caught.value)), TOKEN)


def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    curve = "ec -pkeyopt ec_paramgen_curve:prime256v1"
    words = f"req -x509 -newkey {curve} -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(lambda *_: as_json([1])) as served:
        served.server.socket = context.wrap_socket(served.server.socket, server_side=True)
        url = served.url.replace("http:", "https:")
        with pytest.raises(ModelError, match="a certificate that cannot be trusted"):
            post(poster(url))
    assert served.bodies == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "https://localhost/"])
def test_this_machine_is_not_asked_through_a_proxy(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9/")

    def proxied(address: str) -> bool:
        handlers = poster(address)._opener.handlers
        return any(getattr(one, "proxies", {}) for one in handlers)

    assert not proxied(url)
    assert proxied("http://example.org/")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8000/predict", "https://example.org/v1/models/m:predict?version=2"],
)
def test_an_address_may_be_http_or_https(url: str) -> None:
    assert checked_address(url) == url


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://example.org/x", "is not one of http:// or https://"),
        ("file:///etc/passwd", "is not one of http:// or https://"),
        ("example.org/predict", "is not one of http:// or https://"),
        ("", "is not one of http:// or https://"),
        ("http://", "is not one of http:// or https://"),
        ("http://[::1/", "cannot be read"),
        ("http://host:port/", "cannot be read"),
        (7, "cannot be read"),
        (b"http://host/", "cannot be read"),
        ("http://me:hush@host:port/", "cannot be read"),
        ("http://host:0/", "cannot be asked"),
        ("http://host/a b", "cannot be asked"),
        ("http://hóst/", "cannot be asked"),
        ("http://host/\x7f", "cannot be asked"),
        ("https://me:hush@host/x", "holds a user or a password"),
        ("https://hush@host/x", "holds a user or a password"),
        ("https://host/x?API_Key=hush", "holds the parameter 'API_Key'"),
        ("https://host/x?a=1&access_token=hush", "holds the parameter 'access_token'"),
        ("gopher://me:hush@host/x?token=hush", "'gopher://host/x' is not one of"),
        ("me:hush@host/x?code=hush", "'host/x' is not one of"),
        ("host/x?code=hush#hush", "'host/x' is not one of"),
        ("http://host:0/?code=hush#hush", "'http://host:0/' cannot be asked"),
        ("https://host/?hush-token", "holds a parameter without a value"),
    ],
)
def test_other_addresses_are_refused_without_their_secrets(url: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_address(url)
    assert sentence in str(caught.value)
    assert "hush" not in str(caught.value)


def test_what_follows_a_question_mark_is_not_told() -> None:
    assert poster("https://host/x?version=2#part").name == "the model at https://host/x"
