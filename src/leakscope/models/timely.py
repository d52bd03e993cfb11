"""HTTP whose whole answer must come within the timeout, its first lines included.

A timeout of a socket is for each time that it waits: a service that sends one byte now and then
would be listened to for as long as it likes.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, Request


class _UntilThen(io.RawIOBase):
    """What comes from a socket before the time is over that its timeout allows."""

    def __init__(self, sock: socket.socket, stream: io.RawIOBase) -> None:
        self._socket, self._stream = sock, stream
        seconds = sock.gettimeout()
        self._until = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        found: int | None = self._stream.readinto(buffer)
        return found

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp: Any = io.BufferedReader(_UntilThen(sock, self.fp.detach()))


class _Connection(HTTPConnection):
    response_class = _Response


class _SecureConnection(HTTPSConnection):
    response_class = _Response


class TimelyHTTP(HTTPHandler):
    """http:// with one timeout for all of an answer."""

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class TimelyHTTPS(HTTPSHandler):
    """https:// with one timeout for all of an answer; context: says which certificates hold."""

    def __init__(self, context: Any) -> None:
        super().__init__(context=context)
        self._trusting = context

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req, context=self._trusting)
