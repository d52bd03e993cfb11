"""Ctrl-C stops soon, also while a library is in the middle of one long call."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# How long a command may take to clean up after itself.
PATIENCE = 1.5
INTERRUPTED = 130
SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def stopping_soon(say: Callable[[str], None]) -> Iterator[None]:
    """End the process where an interrupt has not ended the context within PATIENCE seconds.

    Python tells its main thread of an interrupt between two steps of Python code, and a library
    may compute for minutes in one. Its files are whole at any moment, so that nothing is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's business
        return
    over = threading.Event()
    told, teller = socket.socketpair()
    teller.setblocking(False)
    before = signal.set_wakeup_fd(teller.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while signals := told.recv(1):
            if signals[0] == signal.SIGINT and not over.wait(PATIENCE):
                if sys.stderr.isatty():
                    sys.stderr.write(SHOW_CURSOR)  # a bar that has no time to clean up hid it
                say("Stopped in the middle of a step; what was finished before is kept.")
                os._exit(INTERRUPTED)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        teller.close()
        watcher.join()
        told.close()
