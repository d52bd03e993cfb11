"""Text without secrets: the one place that cleans what a service says and what the user typed.

It knows nothing of the HTTP client. Clean a text before it is cut to length: half a token would
not be recognized.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

HIDDEN = "…"
# A shorter secret is hidden where it stands alone: within words it would be found everywhere.
LONG_ENOUGH = 6

# The scheme of an address, and the rest of it: in a sentence, and in a word of a command line.
_START = r"\b([a-z][a-z0-9+.-]{0,20}:/{1,2})"
_ADDRESS = re.compile(_START + r"([^\s\"'<>]*)", re.IGNORECASE)
_WORD = re.compile(_START + r"(.*)", re.IGNORECASE | re.DOTALL)
# What no service should say, and no reader needs: credentials under their usual names.
_NAMED = re.compile(
    r"\b((?:proxy-)?authorization|(?:api|access|secret|private)[_-]?key|(?:\w{1,20}[_-])?token|secret"
    r"|passw(?:or)?d|pwd|signature)([\"']?\s*[=:]\s*[\"']?)(?:(?:bearer|basic)\s+)?[^\s\"'&,;<>]+",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(bearer|basic)\s+(?=[a-z]{0,60}[\d=_.~+/-])[\w.~+/=-]{4,}", re.IGNORECASE)
# One letter as it may be written: %2F, %252F, \u002f, \x2f, &#47;, &#x2f;, &amp;, or as it is.
_UNIT = re.compile(
    r"(?:\\{1,4}(?:u00|x)|%(?:25){0,3})(?P<code>[0-9a-f]{2})"
    r"|&(?:amp;){0,2}(?P<entity>\#\d{1,8}|\#x[0-9a-f]{1,8}|quot|amp|lt|gt);"
    r"|\\{1,4}[nrt]|[\s\\]+|(?P<letter>.)",
    re.IGNORECASE | re.DOTALL,
)


def public_address(url: str) -> str:
    """The address without user, password, query and fragment: all of it that may be stored."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    if (
        not url.lower().lstrip().startswith(f"{parts.scheme}://")
    ):  # "user:password@host/path" has a scheme named user
        return host + parts.path.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def without_queries(text: str, *, word: bool = False) -> str:
    """The text whose addresses have lost user, password, query and fragment.

    word: the text is one word of a command line, which an address in it reaches the end of.
    """

    def shortened(match: re.Match[str]) -> str:
        kept, *query = re.split(r"[?#]", match[2], maxsplit=1)
        host, slash, path = kept.partition("/")
        _, at, host = host.rpartition("@")
        start = match[1] + (HIDDEN + at if at else "")
        return start + host + slash + path + (f"?{HIDDEN}" if query else "")

    return (_WORD if word else _ADDRESS).sub(shortened, text)


def scrubber(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that takes these secrets out of a text, however they are encoded there.

    Any character of a secret may be percent-encoded, an escape of JSON or an entity of HTML, and
    line breaks may divide it. Base64 of a text that holds the secret is hidden as well.
    """
    whole = {secret.strip() for secret in secrets}
    spelled = {form for one in whole for form in (one, one.replace(" ", "+"), *_base64_of(one))}
    # A secret may itself look like an encoding: it is known as it is, and as that would be read.
    known = {_decoded(text)[0] for form in spelled for text in (form, quote(form, safe=""))} - {""}

    def scrub(text: str) -> str:
        text = _NAMED.sub(rf"\1\2{HIDDEN}", without_queries(_without(text, known)))
        return _SCHEME.sub(rf"\1 {HIDDEN}", text)

    return scrub


def _without(text: str, known: Collection[str]) -> str:
    """The text with an ellipsis for each of the decoded secrets in it."""
    plain, starts, ends = _decoded(text)
    hidden: list[tuple[int, int]] = []
    for secret in known:
        at = plain.find(secret)
        while at >= 0:
            start, end = starts[at], ends[at + len(secret) - 1]
            inside_a_word = _is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])
            if len(secret) >= LONG_ENOUGH or not inside_a_word:
                hidden.append((start, end))
            at = plain.find(secret, at + 1)
    kept, shown_up_to = "", 0
    for start, end in sorted(hidden):
        if end > shown_up_to:
            kept += text[shown_up_to:start] + HIDDEN if start >= shown_up_to else ""
            shown_up_to = end
    return kept + text[shown_up_to:]


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _decoded(text: str) -> tuple[str, list[int], list[int]]:
    """The bytes of a text without encodings, blanks and backslashes, and where each stood."""
    plain, starts, ends = list[str](), list[int](), list[int]()
    for unit in _UNIT.finditer(text):
        if unit["code"] is not None:
            letter = chr(int(unit["code"], 16))
        else:
            entity = unit["entity"] and html.unescape(f"&{unit['entity'].lower()};")
            letter = (entity or unit["letter"] or "").encode("utf-8", "replace").decode("latin-1")
        letter = letter.strip(" \t\r\n\\").lower()
        plain += letter
        starts += [unit.start()] * len(letter)
        ends += [unit.end()] * len(letter)
    return "".join(plain), starts, ends


def secrets_of(parts: SplitResult, headers: Mapping[str, str]) -> Iterator[str]:
    """What an address and the headers of a request hold that a service could repeat.

    Every value of the query counts: ``code`` and ``sig`` are as secret as ``token``.
    """
    for text in (parts.query, parts.fragment):
        yield text
        yield from (value for _, value in parse_qsl(text))
    for value in headers.values():
        credentials = value.partition(" ")[2]  # after the word Bearer or Basic
        yield from (value, credentials)
        with suppress(ValueError):  # Basic: the base64 of user:password
            decoded = base64.b64decode(credentials, validate=True).decode("ascii")
            yield from (decoded, decoded.partition(":")[2])


def _base64_of(secret: str) -> Iterator[str]:
    """The parts of a base64 text that this secret determines, at each of its three offsets."""
    data = secret.encode("utf-8", "replace")
    if len(data) < LONG_ENOUGH:
        return
    for offset in range(3):
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        encoded = base64.b64encode(bytes(offset) + data).decode()[first:last]
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")
