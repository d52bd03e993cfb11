"""A real web server on this machine for the tests of what asks one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from leakscope.models.pacing import Clock


@dataclass
class Reply:
    """What the server answers with; where length is given, what it says of the body's size."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


Answer = Callable[[Any, int], Reply]


def as_json(thing: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps(thing).encode(), status, named)


def predicting(predict: Callable[[list[Any]], Any]) -> Answer:
    """Answers {"instances": …} with {"predictions": …}."""
    return lambda asked, _: as_json({"predictions": predict(asked["instances"])})


@dataclass
class Served:
    """Where the server listens, and what it was asked: bodies, headers and paths."""

    url: str
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    server: Any = None


@contextmanager
def serving(answer: Answer) -> Iterator[Served]:
    """Serve on a free port: answer(what was posted, how many requests came before)."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            before = len(served.bodies)
            served.bodies.append(asked)
            served.headers.append(dict(self.headers))
            served.paths.append(self.path)
            reply = answer(asked, before)
            self.send_response(reply.status)
            size = len(reply.body) if reply.length is None else reply.length
            if size >= 0:
                self.send_header("Content-Length", str(size))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Who asked may hang up: that is what some tests are about."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        served = Served(f"http://127.0.0.1:{server.server_port}/predict", server=server)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


class FakeTime:
    """A clock that nobody waits for: sleeping moves it on."""

    def __init__(self, draw: float = 0.0) -> None:
        self.time = 100.0
        self.slept: list[float] = []
        self.clock = Clock(now=lambda: self.time, sleep=self._sleep, draw=lambda: draw)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
