"""A released model behind HTTP: what it may be asked, how fast, how much, and what that took."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

from leakscope.errors import InputError, ModelError, OracleBudgetError
from leakscope.models.pacing import Clock, TokenBucket
from leakscope.models.posting import LONGEST_START, Poster, checked_address
from leakscope.options import magnitude, whole_number
from leakscope.records.checks import listed
from leakscope.scrubbing import public_address

BEARER = "Authorization"


@dataclass
class Spent:
    """What a service was asked so far.

    records: different ones sent, each counted once however often it had to be sent again;
    requests: those that were answered; retries: attempts after the first; seconds: spent waiting,
    for answers, for the rate and before trying again.
    """

    records: int = 0
    requests: int = 0
    retries: int = 0
    seconds: float = 0.0

    def since(self, before: Spent) -> Spent:
        """What was asked after this earlier count."""
        return Spent(
            self.records - before.records,
            self.requests - before.requests,
            self.retries - before.retries,
            self.seconds - before.seconds,
        )

    def copy(self) -> Spent:
        """The count as it stands now."""
        return replace(self)


@dataclass(frozen=True, eq=False, repr=False)
class Service:
    """A model behind HTTP that takes JSON by POST, in batches of records.

    url: an http or https address; nothing after its path is shown or stored. instances: the key of
    the records in a request, "" for a bare list. headers: others to send; no message holds their
    values. token_env: the environment variable that holds the secret, sent as ``Authorization:
    Bearer …``, or as it is in another token_header.
    batch_size: records in one request. timeout: seconds for one answer. requests_per_second,
    records_per_second: not more than that. retries: attempts after the first, where the service is
    busy, fails or cannot be reached. budget: how many records it is asked about in all; what would
    go beyond is not sent. largest_answer: bytes. spent: what it was asked so far.
    """

    url: str
    _: KW_ONLY
    instances: str = "instances"
    headers: Mapping[str, str] = field(default_factory=dict)
    token_env: str | None = None
    token_header: str = BEARER
    batch_size: int = 256
    timeout: float = 30.0
    requests_per_second: float | None = None
    records_per_second: float | None = None
    retries: int = 4
    budget: int | None = None
    largest_answer: int = 64 * 2**20
    clock: Clock = field(default=Clock())
    spent: Spent = field(default_factory=Spent, init=False)

    def __post_init__(self) -> None:
        checked_address(self.url)
        for name, value in {**self.headers, self.token_header: ""}.items():
            _check_header(name, value)
        whole_number("batch_size", self.batch_size, 1)
        whole_number("retries", self.retries, 0)
        whole_number("largest_answer", self.largest_answer, 1)
        magnitude("timeout", self.timeout, above=0)
        for option in ("requests_per_second", "records_per_second"):
            if getattr(self, option) is not None:
                magnitude(option, getattr(self, option), above=0)
        if self.budget is not None:
            whole_number("budget", self.budget, 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({public_address(self.url)!r})"

    @property
    def __name__(self) -> str:
        """What messages and the report call it."""
        return f"the model at {public_address(self.url)}"

    @property
    def remaining(self) -> int | None:
        """How many records it may still be asked about; None: any number."""
        return None if self.budget is None else self.budget - self.spent.records

    def send(self, records: Sequence[str]) -> Iterator[tuple[list[str], Any]]:
        """Each batch of these records (JSON texts) with its answer, decoded; all or none."""
        if self.remaining is not None and len(records) > self.remaining:
            raise OracleBudgetError(
                f"{self.__name__} was asked about {self.spent.records:,} of the {self.budget:,} "
                f"records that the budget allows, and {len(records):,} more are needed now; give a "
                f"budget of at least {self.spent.records + len(records):,}, or ask about fewer"
            )
        for start in range(0, len(records), self.batch_size):
            batch = list(records[start : start + self.batch_size])
            yield batch, self._post(batch)

    def listed_under(self, answer: Any, key: str, records: int) -> list[Any]:
        """The list under this key of an answer ("" for the answer itself), an entry per record."""
        found = answer
        if key:
            if not isinstance(answer, dict) or key not in answer:
                keys = ""
                if isinstance(answer, dict):
                    keys = listed(f"{self.quote(name, 40)!r}" for name in answer)
                told = f"an object with the keys {keys}" if keys else f"a JSON {_kind(answer)}"
                raise ModelError(
                    f"{self.__name__} answered with {told}, where the key {key!r} is needed; name "
                    "the key that its answers stand under"
                )
            found = answer[key]
        if not isinstance(found, list):
            raise ModelError(
                f"{self.__name__} answered with a JSON {_kind(found)} where a list with an entry "
                "per record is needed; name the key that its answers stand under"
            )
        if len(found) != records:
            raise ModelError(
                f"{self.__name__} answered with {len(found):,} entries for {records:,} records; it "
                "must give one for each"
            )
        return found

    def quote(self, said: str, longest: int = LONGEST_START) -> str:
        """A part of an answer, fit for a message: without secrets, and short."""
        return self._poster.quote(said, longest)

    def _post(self, batch: Sequence[str]) -> Any:
        listed = f"[{', '.join(batch)}]"
        body = f"{{{json.dumps(self.instances)}: {listed}}}" if self.instances else listed
        poster = self._poster
        before, retried = self.clock.now(), poster.retried
        # Counted before it is sent: the service has seen them even if it gives no answer.
        self.spent.records += len(batch)
        try:
            answer = poster.post(body, lambda: self._keep_the_rate(len(batch)))
            self.spent.requests += 1
        finally:
            self.spent.retries += poster.retried - retried
            self.spent.seconds += self.clock.now() - before
        return answer

    def _keep_the_rate(self, records: int) -> None:
        requests, one_by_one = self._buckets
        if requests is not None:
            requests.take(1)
        if one_by_one is not None:
            one_by_one.take(records)

    @cached_property
    def _buckets(self) -> tuple[TokenBucket | None, TokenBucket | None]:
        def bucket(rate: float | None, at_once: int) -> TokenBucket | None:
            return None if rate is None else TokenBucket(rate, at_once, self.clock)

        return bucket(self.requests_per_second, 1), bucket(self.records_per_second, self.batch_size)

    @cached_property
    def _poster(self) -> Poster:
        secret = None if self.token_env is None else _secret(self.token_env)
        headers = dict(self.headers)
        if secret is not None:
            bearer = self.token_header.lower() == BEARER.lower()
            headers[self.token_header] = f"Bearer {secret}" if bearer else secret
        return Poster(
            self.url,
            headers=headers,
            timeout=self.timeout,
            retries=self.retries,
            largest_answer=self.largest_answer,
            clock=self.clock,
        )


def _kind(found: Any) -> str:
    """What JSON calls it."""
    kinds = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return kinds.get(type(found), "number")


def _check_header(name: Any, value: Any) -> None:
    """Refuse a header that cannot be sent; the HTTP client would say so, and quote its value."""
    for what, text in (("name", name), ("value", value)):
        if not isinstance(text, str) or not text.isascii() or (text and not text.isprintable()):
            which = f"The header {name!r}" if what == "value" else "A header"
            raise InputError(
                f"{which} has a {what} that is no line of printable ASCII characters; headers is a "
                "dictionary of names and values"
            )
    if not name or " " in name or ":" in name:
        raise InputError(
            f"The header {name!r} cannot be sent; give a name such as X-Api-Key, without a colon"
        )


def _secret(variable: str) -> str:
    """The secret in this environment variable; a message names the variable alone."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(
            f"The environment variable {variable!r} is not set, or is empty; put the token of the "
            "service into it"
        )
    if not value.isascii() or not value.isprintable():
        raise InputError(
            f"The environment variable {variable!r} holds characters that a header cannot; "
            "put the token alone into it"
        )
    return value
