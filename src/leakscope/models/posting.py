"""JSON by POST to one address: bounded in time and size, tried again where that can help.

The address is the only one that records are ever sent to. Redirects are not followed, certificates
are checked. What a service says is scrubbed of secrets before it gets into a message, and no
message is chained to an exception of the HTTP client, which may quote the service as well.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, parse_qsl, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from leakscope.errors import InputError, ModelError
from leakscope.models.pacing import Clock, asked_to_wait, backoff
from leakscope.models.timely import TimelyHTTP, TimelyHTTPS
from leakscope.scrubbing import HIDDEN, public_address, scrubber, secrets_of

PART = 65_536  # bytes read at once, and the longest text that is quoted from
LONGEST_SAYING, LONGEST_START = 200, 80  # characters of an error, and of an answer, that are quoted
# A service that asks for a longer pause than this is not waited for.
PATIENCE = 600.0
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Names of parameters that hold what must not stand in a command line.
SECRETS = ("key", "token", "secret", "password", "passwd", "signature", "sig", "auth")

# What to do about a status that another attempt would only repeat.
ADVICE = {
    401: "name the environment variable of its token with token_env",
    403: "name the environment variable of its token with token_env",
    413: "give a smaller batch_size",
}
EXAMPLE = "http://127.0.0.1:8000/predict"
USUAL = "check the address, and the form of the records it takes"


class _AgainError(Exception):
    """This attempt failed in a way that another may not; wait: the seconds that were asked for."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class Poster:
    """Sends JSON texts to one address and gives back the JSON that they are answered with.

    headers: sent beside those of JSON; no message holds their values. retried: how many attempts
    were not the first.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        retries: int,
        largest_answer: int,
        clock: Clock,
    ) -> None:
        self.url, self.name = url, f"the model at {public_address(url)}"
        self.headers = JSON | dict(headers)
        self.timeout, self.retries, self.largest_answer = timeout, retries, largest_answer
        self.clock, self.retried = clock, 0
        self._scrub = scrubber(secrets_of(urlsplit(url), headers))
        self._opener = _opener_for(url)

    def quote(self, text: str, longest: int = LONGEST_SAYING) -> str:
        """What the service said, fit for a message: without secrets, then on one line, then cut.

        A text that is too long to be scrubbed as a whole is not quoted at all.
        """
        if len(text) > PART:
            return HIDDEN
        line = " ".join(self._scrub(text).split())
        line = "".join(one if one.isprintable() else "�" for one in line)
        return line if len(line) <= longest else line[:longest] + HIDDEN

    def post(self, body: str, before: Callable[[], None]) -> Any:
        """The answer to this text, decoded; a ModelError says why there is none.

        before: called before each attempt, to keep a rate.
        """
        request = Request(self.url, body.encode(), self.headers, method="POST")
        attempt = 0
        while True:
            before()
            try:
                return self._decoded(self._exchange(request))
            except _AgainError as failed:
                self._wait_or_stop(failed, attempt)
            attempt += 1
            self.retried += 1

    def _wait_or_stop(self, failed: _AgainError, attempt: int) -> None:
        if failed.wait > PATIENCE:
            raise ModelError(
                f"{self.name} asks to be left alone for {failed.wait:,.0f} seconds ({failed}); "
                "try again later, or ask it less often with requests_per_second"
            ) from None
        if attempt == self.retries:
            times = "1 attempt" if attempt == 0 else f"{attempt + 1} attempts"
            raise ModelError(
                f"{self.name} gave no answer in {times} ({failed}); see that it runs there, or "
                "try again later"
            ) from None
        self.clock.sleep(max(failed.wait, backoff(attempt, self.clock.draw())))

    def _exchange(self, request: Request) -> bytes:
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                return self._read(response)
        except HTTPError as error:
            with error:
                self._refused(error)
        except URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise ModelError(
                    f"{self.name} has a certificate that cannot be trusted "
                    f"({self.quote(error.reason.verify_message)}); name the authority that signed "
                    "it in SSL_CERT_FILE"
                ) from None
            slow = isinstance(error.reason, TimeoutError)
            raise _AgainError(self._too_slow if slow else self._plain(error.reason)) from None
        except TimeoutError:
            raise _AgainError(self._too_slow) from None
        except (HTTPException, OSError) as error:
            raise _AgainError(f"the connection broke off: {self._plain(error)}") from None

    @property
    def _too_slow(self) -> str:
        return f"no answer within {self.timeout:g} seconds"

    def _read(self, response: HTTPResponse) -> bytes:
        """The body, if it is no larger than allowed and all of it comes in time."""
        # A service that sends a byte now and then never lets the socket's own timeout pass.
        until = self.clock.now() + self.timeout
        declared = response.headers.get("Content-Length", "")
        # A number of more digits is no size, and Python refuses to read the longest.
        plausible = declared.isascii() and declared.isdigit() and len(declared) < 20
        expected = int(declared) if plausible else None
        body = bytearray()
        while expected is None or len(body) < expected:
            if max(expected or 0, len(body)) > self.largest_answer:
                raise ModelError(
                    f"{self.name} answered with more than {self.largest_answer:,} bytes; give a "
                    "smaller batch_size, or a larger largest_answer"
                )
            part = response.read1(PART)
            if not part:
                break
            body += part
            if self.clock.now() > until:
                raise _AgainError(self._too_slow)
        if expected is not None and len(body) < expected:
            raise _AgainError(f"the connection broke off after {len(body):,} of {expected:,} bytes")
        return bytes(body)

    def _refused(self, error: HTTPError) -> NoReturn:
        """What to make of a status that is no success."""
        code = error.code
        told = f"status {code}{self._said(error)}"
        if code in (408, 429) or code >= 500:
            wait = asked_to_wait(error.headers.get("Retry-After"))
            raise _AgainError(told, wait) from None
        if 300 <= code < 400:
            place = error.headers.get("Location", "").partition("?")[0].partition("#")[0]
            where = self.quote(place) or "another address"
            raise ModelError(
                f"{self.name} leads on to {where} (status {code}), and records are sent to no "
                "address but the one given; give that one if it is right"
            ) from None
        why = f"refused a request ({told}); {ADVICE.get(code, USUAL)}"
        raise ModelError(f"{self.name} {why}") from None

    def _said(self, error: HTTPError) -> str:
        """What stands in the body of an error, in one short line."""
        response: Any = error.fp
        body = bytearray()
        try:
            while len(body) <= PART and (part := response.read1(PART)):
                body += part
        except (HTTPException, OSError):
            return ""
        return "" if response.length else self._quote_body(bytes(body), ": ")

    def _quote_body(self, body: bytes, before: str = "", longest: int = LONGEST_SAYING) -> str:
        """The message in a body, after these words; nothing where there is none."""
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            text = str(json.loads(text)["error"])
        said = self.quote(text, longest)
        return before + said if said else ""

    def _decoded(self, body: bytes) -> Any:
        try:
            return json.loads(body.decode(), parse_constant=_not_json)
        except (ValueError, RecursionError) as error:
            start = self._quote_body(body, longest=LONGEST_START)
            raise ModelError(
                f"{self.name} answered with what is not JSON ({self._plain(error)}): {start!r}; "
                "check the address"
            ) from None

    def _plain(self, error: object) -> str:
        """An error of a library in one line: it may quote the service."""
        return self.quote(str(error)).rstrip(".") or type(error).__name__


def checked_address(url: Any) -> str:
    """The address, if records may be sent there: http or https, and no secret in it."""
    parts = _parts_of(url)
    if parts is None:
        raise InputError(f"The address of the model cannot be read; give one such as {EXAMPLE}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"The address {public_address(url)!r} is not one of http:// or https://; give one "
            f"such as {EXAMPLE}"
        )
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"The address of {parts.hostname} holds a user or a password, which the list of "
            "processes shows to others; put it into an environment variable and name that with "
            "token_env"
        )
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if any(secret in name.lower() for secret in SECRETS):
            which = f"the parameter {name!r}" if value else "a parameter without a value"
            raise InputError(
                f"The address of {parts.hostname} holds {which}, which the list "
                "of processes shows to others; put its value into an environment variable and name "
                "that with token_env, and with token_header where it goes"
            )
    if parts.port == 0 or not (url.isascii() and url.isprintable()) or " " in url:
        raise InputError(
            f"The address {public_address(url)!r} cannot be asked; give one such as {EXAMPLE}"
        )
    return str(url)


def _parts_of(url: Any) -> SplitResult | None:
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is no number shows here only
    except ValueError:
        return None
    return parts


class _StayHere(HTTPRedirectHandler):
    """Follows no redirect: the status itself is the answer."""

    def redirect_request(self, *asked: Any) -> None:
        return None


def _opener_for(url: str) -> OpenerDirector:
    secure = urlsplit(url).scheme == "https"
    # The default context takes its time to read certificates.
    speaking = TimelyHTTPS(ssl.create_default_context()) if secure else TimelyHTTP()
    handlers: list[Any] = [_StayHere(), speaking]
    if urlsplit(url).hostname in LOOPBACK:
        handlers.append(ProxyHandler({}))  # a proxy would look for it on its own machine
    return build_opener(*handlers)


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
