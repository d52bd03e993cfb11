from __future__ import annotations

import base64
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.scrubbing import public_address, scrubber, secrets_of, without_queries

PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=40)


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("https://host:8/a/b?code=1&pwd=2#part", "https://host:8/a/b"),
        ("https://ann:hush@host/a", "https://host/a"),
        ("http://[::1]:9/a?b", "http://[::1]:9/a"),
        ("http://host/@latest/predict", "http://host/@latest/predict"),
        ("host/path?code=1", "host/path"),
        ("ann:hush@host/path?code=1", "host/path"),
        ("ann:hush@host/path?next=http://else/", "host/path"),
        ("HTTP://host/a?b", "http://host/a"),
        ("//ann:hush@host/a", "host/a"),
        ("", ""),
        ("http://", "http://"),
        ("file:///etc/passwd", "file:///etc/passwd"),
    ],
)
def test_an_address_is_stored_up_to_its_path(url: str, left: str) -> None:
    assert public_address(url) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see http://a/b?c=1#d, or https://e/f.", "see http://a/b?… or https://e/f."),
        ("to 'tcp://ann:hush@node:8786'", "to 'tcp://…@node:8786'"),
        ("http://a/b#hush", "http://a/b?…"),
        ("is it so? 3/4 #5 a://", "is it so? 3/4 #5 a://"),
    ],
)
def test_addresses_in_a_sentence_lose_their_queries(text: str, left: str) -> None:
    assert without_queries(text) == left


def test_in_a_command_line_an_address_reaches_to_the_end_of_its_word() -> None:
    word = "--model-url=http://host/p?code=a \"b'c<d"
    assert without_queries(word, word=True) == "--model-url=http://host/p?…"
    assert without_queries("--label=is it?", word=True) == "--label=is it?"


@given(PRINTABLE, st.text(max_size=20), st.text(max_size=20))
def test_a_secret_is_hidden_wherever_it_stands(secret: str, before: str, after: str) -> None:
    scrub = scrubber([secret])
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    for spelled in (secret, quote(secret, safe=""), encoded):
        assert spelled not in scrub(f"{before} {spelled} {after}")


@given(st.text(st.characters(codec="ascii", exclude_characters=":=/%&\\"), max_size=80))
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    if not {"bearer", "basic"} & {*text.lower().split()}:
        assert scrubber(["s3cret-of-the-service"])(text) == text


def test_a_short_secret_is_hidden_as_a_word() -> None:
    assert scrubber(["ab"])("ab cab ab2 'ab' (AB) %61b") == "… cab ab2 '…' (…) …"


def test_credentials_that_nobody_named_are_hidden_too() -> None:
    said = scrubber([])(
        'password: hush1 Authorization: Bearer hush2 "api_key": "hush3" refresh_token=hush4&x=1 '
        "basic aHVzaDU= basic authentication is required"
    )
    assert "hush" not in said
    assert "aHV" not in said
    assert said.endswith("basic authentication is required")


def test_secrets_of_an_address_and_its_headers() -> None:
    basic = "Basic " + base64.b64encode(b"ann:open sesame").decode()
    parts = urlsplit("https://host/a?code=c%20d&v=2#part=9")
    found = {*secrets_of(parts, {"Authorization": basic, "X-Key": "k3y"})}
    assert {"code=c%20d&v=2", "c d", "2", "part=9", "9", basic, "open sesame", "k3y"} <= found


def test_a_long_token_in_a_long_text_takes_no_time() -> None:
    token = "aA1._" * 800
    said = scrubber([token])("\\" * 30_000 + token + "a-" * 15_000)
    assert said == "\\" * 30_000 + "…" + "a-" * 15_000
