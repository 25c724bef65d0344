"""How a command is getting on, where there is no terminal: a plain line every few seconds."""

from __future__ import annotations

import threading
import time
from _thread import interrupt_main
from collections.abc import Callable
from typing import Final

from rich.console import Console

from penstock.cli.views.display import say

__all__ = ["LINE_PERIOD_S", "PlainLines"]

LINE_PERIOD_S: Final = 5.0
_POLL_S: Final = 0.1


class PlainLines:
    """Says `text()` once in a period in which nothing else was said; nothing while it is empty.

    It does so in a thread of its own, for what takes long seldom reports meanwhile. When what it
    writes to has been closed, as by `head`, the command is interrupted.
    """

    def __init__(self, console: Console, text: Callable[[], str], period_s: float) -> None:
        self._console = console
        self._text = text
        self._period_s = period_s
        self._last_at = time.perf_counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> PlainLines:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def say(self, line: str) -> None:
        """Say something else, now."""
        self._last_at = time.perf_counter()
        say(self._console, line)

    def _run(self) -> None:
        while not self._ended.wait(min(self._period_s, _POLL_S)):
            if time.perf_counter() - self._last_at < self._period_s or not (text := self._text()):
                continue
            try:
                self.say(text)
            except (BrokenPipeError, SystemExit):  # rich's word for it
                interrupt_main()  # nobody reads on: end as for Ctrl-C
                return
