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
from leakscope.models.posting import Poster, checked_address, public_address
from leakscope.options import magnitude, whole_number
from leakscope.records.checks import listed

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


@dataclass(frozen=True, eq=False)
class Service:
    """A model behind HTTP that takes JSON by POST, in batches of records.

    url: an http or https address. instances: the key of the records in a request, "" for a bare
    list. headers: others to send, none of them secret. token_env: the environment variable that
    holds the secret, sent as ``Authorization: Bearer …``, or as it is in another token_header.
    batch_size: records in one request. timeout: seconds for one answer. requests_per_second,
    records_per_second: not more than that. retries: attempts after the first, where the service is
    busy, fails or cannot be reached. budget: how many records it is asked about in all; what would
    go beyond is not sent. largest_answer: bytes. spent: what it was asked so far.
    """

    url: str
    _: KW_ONLY
    instances: str = "instances"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_env: str | None = None
    token_header: str = BEARER
    batch_size: int = 256
    timeout: float = 30.0
    requests_per_second: float | None = None
    records_per_second: float | None = None
    retries: int = 4
    budget: int | None = None
    largest_answer: int = 64 * 2**20
    clock: Clock = field(default=Clock(), repr=False)
    spent: Spent = field(default_factory=Spent, init=False, repr=False)

    def __post_init__(self) -> None:
        checked_address(self.url)
        whole_number("batch_size", self.batch_size, 1)
        whole_number("retries", self.retries, 0)
        whole_number("largest_answer", self.largest_answer, 1)
        magnitude("timeout", self.timeout, above=0)
        for option in ("requests_per_second", "records_per_second"):
            if getattr(self, option) is not None:
                magnitude(option, getattr(self, option), above=0)
        if self.budget is not None:
            whole_number("budget", self.budget, 0)

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
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        if secret is not None:
            bearer = self.token_header.lower() == BEARER.lower()
            headers[self.token_header] = f"Bearer {secret}" if bearer else secret
        return Poster(
            self.url,
            headers=headers,
            secret=secret,
            timeout=self.timeout,
            retries=self.retries,
            largest_answer=self.largest_answer,
            clock=self.clock,
        )


def listed_under(answer: Any, key: str, records: int, name: str) -> list[Any]:
    """The list under this key of an answer ("" for the answer itself), with an entry per record."""
    found = answer
    if key:
        if not isinstance(answer, dict) or key not in answer:
            keys = listed(f"{one[:40]!r}" for one in answer) if isinstance(answer, dict) else ""
            told = f"an object with the keys {keys}" if keys else f"a JSON {_kind(answer)}"
            raise ModelError(
                f"{name} answered with {told}, where the key {key!r} is needed; name the key that "
                "its answers stand under"
            )
        found = answer[key]
    if not isinstance(found, list):
        raise ModelError(
            f"{name} answered with a JSON {_kind(found)} where a list with an entry per record is "
            "needed; name the key that its answers stand under"
        )
    if len(found) != records:
        raise ModelError(
            f"{name} answered with {len(found):,} entries for {records:,} records; it must give "
            "one for each"
        )
    return found


def _kind(found: Any) -> str:
    """What JSON calls it."""
    kinds = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return kinds.get(type(found), "number")


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
