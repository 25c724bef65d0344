"""The demo's previews: processes that run beside it, watched while it waits.

They are killed when the demo no longer waits for them, so nothing outlives it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numba
import pyarrow as pa

from penstock.cli.demo.preview import COMPILED, INTERPRETED, Preview
from penstock.cli.demo.state import DemoState
from penstock.cli.demo.view import Refresh
from penstock.samples.nexmark import Nexmark

__all__ = ["Previews"]

# What a join says before it compiles; without it, kernels that do not come are compiled too.
_COMPILING: Final = "compiling"
_LOADED_WITHIN_S: Final = 15.0
_WAITS: Final = {
    INTERPRETED: "the embedded engine joins a few rows, about five seconds",
    COMPILED: "the embedded engine loads its kernels, a few seconds",
}
_COMPILES: Final = "kernels compile, once on this machine, up to a minute"


class _Process:
    """One preview. Its output goes to files, which need no reader while it runs."""

    def __init__(self, kind: str, work: Nexmark) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="penstock-preview-")
        self._output = Path(self._directory.name) / "output"
        self._errors = Path(self._directory.name) / "errors"
        self._started = time.perf_counter()
        environment = {**os.environ}
        if kind == INTERPRETED:
            environment["NUMBA_DISABLE_JIT"] = "1"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "penstock.cli.demo.preview_process"),
                    *(kind, str(work.events), str(work.seed)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is the demo's
            )

    @property
    def compiles(self) -> bool:
        """Whether it does so, as far as one can see."""
        age_s = time.perf_counter() - self._started
        return age_s > _LOADED_WITHIN_S or _COMPILING in self._errors.read_text(errors="replace")

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def preview(self) -> Preview:
        """What it found; raises OSError if it failed."""
        if self._process.returncode:
            said = self._errors.read_text(errors="replace").split("\n")
            said = [line for line in said if line.strip()]
            raise OSError(said[-1] if said else f"it ended with {self._process.returncode}")
        try:
            return Preview.from_arrow(pa.ipc.open_stream(self._output.read_bytes()).read_all())
        except (KeyError, ValueError) as error:  # Arrow's errors are ValueErrors
            raise OSError(f"its output is cut short: {error}") from error

    def stop(self) -> None:
        if not self.has_ended():
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()


class Previews:
    """Both kinds, of the streams of `work`, one after the other.

    The interpreted one comes first: it is the one that somebody waits for.
    failures: of those that could not show anything, in words. The demo goes on without them.
    """

    def __init__(self, work: Nexmark, state: DemoState, refresh: Refresh) -> None:
        self._work = work
        self._state = state
        self._refresh = refresh
        self._to_come = [INTERPRETED] if numba.config.DISABLE_JIT else [INTERPRETED, COMPILED]
        self._running: tuple[str, _Process] | None = None
        self._says_compiling = False
        self.failures: list[str] = []
        self._next()

    def __enter__(self) -> Previews:
        return self

    def __exit__(self, *exception: object) -> None:
        self._to_come = []
        self._end()

    @property
    def have_ended(self) -> bool:
        """Then compiled kernels are in the cache, or cannot be."""
        return self._running is None

    def look(self) -> None:
        """Show what there is to show by now."""
        if self._running is None:
            return
        kind, process = self._running
        if process.has_ended():
            try:
                self._state.preview = process.preview()
                self._refresh("preview")
            except OSError as error:
                self.failures.append(_failure(kind, error))
            self._end()
            self._next()
        elif kind == COMPILED and not self._says_compiling and process.compiles:
            self._says_compiling = True
            self._wait(_COMPILES)

    def _next(self) -> None:
        while self._running is None and self._to_come:
            kind = self._to_come.pop(0)
            try:
                self._running = kind, _Process(kind, self._work)
                self._wait(_WAITS[kind])
            except OSError as error:
                self.failures.append(_failure(kind, error))

    def _end(self) -> None:
        if self._running is not None:
            self._running[1].stop()
        self._running = None
        self._state.wait("preview", "")

    def _wait(self, text: str) -> None:
        self._state.wait("preview", text)
        self._refresh("wait")


def _failure(kind: str, error: OSError) -> str:
    return f"the preview by the embedded engine, {kind}, failed: {error}"
