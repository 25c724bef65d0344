"""Spark for the length of a command: found, started, and gone without a trace.

Unless it fails: then its log stays, and the error says where.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.errors import PenstockError
from penstock.files.command_error import CommandError, first_line

__all__ = ["SparkUser", "check_installed", "interrupts_noted", "local_spark"]

_POLL_S: Final = 0.1
_PATIENCE_S: Final = 30.0  # for a Spark that nobody wants any more


@dataclass(frozen=True)
class SparkUser:
    """A command that needs Spark: what it says it is, and what can be done without."""

    what: str
    instead: str


def check_installed(user: SparkUser) -> None:
    """Refuse where PySpark or Java is missing."""
    if importlib.util.find_spec("pyspark") is None:
        raise CommandError(
            f"{user.what} runs on Spark, and pyspark is not installed; "
            f"install penstock with its extra 'spark', {user.instead}"
        )
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        got = f"JAVA_HOME is {home!r}" if home else "JAVA_HOME is not set, nor is java on the PATH"
        raise CommandError(
            f"{user.what} runs on Spark, and no Java was found: {got}; "
            f"set JAVA_HOME to a JDK 17 or newer, {user.instead}"
        )


@contextmanager
def local_spark(
    name: str, cores: int, user: SparkUser, meanwhile: Callable[[], None] = lambda: None
) -> Iterator[tuple[Any, Path]]:
    """A session, and the directory for all that a query of it writes.

    meanwhile: called again and again while Spark starts; what it raises ends that.
    """
    from penstock.spark.local import LOG, local_session

    try:
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    except OSError as error:
        raise CommandError(
            f"cannot make a folder for Spark in {tempfile.gettempdir()!r}: {first_line(error)}; "
            f"set TMPDIR to a folder with some room, {user.instead}"
        ) from None
    kept = False
    starting = _Starting(lambda: local_session(name, directory, cores))
    try:
        try:
            while not starting.has_ended():
                meanwhile()
            yield starting.session(), directory
        finally:
            starting.stop()
    except PenstockError:
        raise
    except Exception as error:  # Spark, Java and the calls between raise many
        kept = True
        raise CommandError(
            f"Spark failed: {first_line(error)}; see its log, {directory / LOG}, {user.instead}"
        ) from error
    finally:
        if not kept:
            shutil.rmtree(directory, ignore_errors=True)


class _Starting:
    """A session that starts in a thread of its own: it takes seconds, and Ctrl-C must not cut a
    call into Java short. Outside the main thread Spark also leaves the handling of Ctrl-C as it
    is."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._session: Any = None
        self._error: BaseException | None = None
        # A daemon: a start that hangs must not keep the command from ending.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session = self._start()
        except BaseException as error:  # handed on to the main thread
            self._error = error

    def has_ended(self) -> bool:
        """Whether it has, after a moment."""
        self._thread.join(_POLL_S)
        return not self._thread.is_alive()

    def session(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._session

    def stop(self) -> None:
        """Also while it still starts."""
        self._thread.join(_PATIENCE_S)
        if self._session is not None:
            self._session.stop()


@contextmanager
def interrupts_noted() -> Iterator[threading.Event]:
    """Ctrl-C is noted and changes nothing else: a call into Java must not be cut short.

    The second one ends the command in the usual way.
    """
    interrupted = threading.Event()

    def note(number: int, frame: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
