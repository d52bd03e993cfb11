"""Ctrl-C, kill and a closed terminal stop soon, also in the middle of one long call."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from leakscope.temporary import remove_folders

# How long a command may take to clean up after itself.
PATIENCE = 1.5
SHOW_CURSOR = "\x1b[?25h"
# Ctrl-C, kill, and a terminal that is closed; Windows does not have the last.
SIGNALS = [
    getattr(signal, f"SIG{name}")
    for name in ("INT", "TERM", "HUP")
    if hasattr(signal, f"SIG{name}")
]


class Stop:
    """Which signal stopped the command; Ctrl-C unless another came."""

    number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """The one that a shell gives to a command which the signal ended."""
        return 128 + self.number

    @property
    def sentence(self) -> str:
        """What to say where nothing else is known of what was stopped."""
        if self.number == signal.SIGINT:
            return "Interrupted."
        return f"Stopped by {signal.Signals(self.number).name}."

    def raise_interrupt(self, number: int, frame: object) -> None:
        """Handle a signal like Ctrl-C."""
        self.number = number
        raise KeyboardInterrupt


def _end_children() -> None:
    """Kill the workers, which would else go on until they miss this process."""
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.kill()


@contextmanager
def stopping_soon(say: Callable[[str], None]) -> Iterator[Stop]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, and end the process where none ends the context soon.

    Python tells its main thread of a signal between two steps of Python code, and a library may
    compute for minutes in one. After PATIENCE seconds the process ends anyway: its files are whole
    at any moment, so that nothing is lost. A signal that was ignored before, as nohup has it, or
    that has a handler, is left alone.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals are the main thread's business
        return
    over = threading.Event()
    taken = [one for one in SIGNALS if signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, stop.raise_interrupt)
    told, teller = socket.socketpair()
    teller.setblocking(False)
    before = signal.set_wakeup_fd(teller.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while signals := told.recv(1):
            if signals[0] in SIGNALS and not over.wait(PATIENCE):
                if sys.stderr.isatty():
                    sys.stderr.write(SHOW_CURSOR)  # a bar that has no time to clean up hid it
                _end_children()
                remove_folders()
                with suppress(OSError, ValueError):  # a terminal that is closed
                    say("Stopped in the middle of a step; what was finished before is kept.")
                os._exit(128 + signals[0])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        over.set()
        for one in taken:
            signal.signal(one, signal.SIG_DFL)
        signal.set_wakeup_fd(before)
        teller.close()
        watcher.join()
        told.close()
