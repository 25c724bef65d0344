"""The demo without Spark: every path through it ends in words, on however slow a machine."""

from __future__ import annotations

import io
import os
import queue
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from penstock.cli import app
from penstock.cli.demo import command as demo
from penstock.cli.demo import previews as demo_previews
from penstock.cli.demo.auctions import Digest, auction_query, embedded_digest, examples
from penstock.cli.demo.preview import COMPILED, INTERPRETED, Preview, preview
from penstock.cli.demo.run import DemoRun
from penstock.cli.demo.state import DemoState
from penstock.cli.demo.view import shown
from penstock.cli.local_spark import SparkUser, interrupts_noted, local_spark
from penstock.files.command_error import CommandError
from penstock.samples import Nexmark

BATCH = 50_000


def whole(work: Nexmark) -> pa.Table:
    with auction_query(work).start() as join:
        parts = [join.push(batch) for batch in work.batches(BATCH)]
        parts.append(join.finish())
    return pa.concat_tables(parts)


def test_the_digest_of_no_results_needs_no_columns() -> None:
    assert Digest.of(pa.table({})) == Digest()
    assert embedded_digest(Nexmark(events=0)) == Digest()


@pytest.mark.parametrize("events", [0, 1, 3, 120])
def test_a_preview_of_few_rows(events: int) -> None:
    found = preview(INTERPRETED, Nexmark(events=events))
    assert (found.results, found.examples.num_rows) == (0, 0)
    assert found.rows <= events
    assert Preview.from_arrow(found.to_arrow()) == found


def test_a_preview_holds_all_results_of_the_busiest_sellers() -> None:
    work = Nexmark(events=250_000, seed=3)
    found = preview(INTERPRETED, work)
    sellers = Counter(work.batch("auctions", 0, work.events, ["seller"])["seller"].to_pylist())
    signed_up = set(work.batch("persons", 0, work.events, ["id"])["id"].to_pylist())
    busiest = [seller for seller, _ in sellers.most_common() if seller in signed_up][:8]
    results = whole(work)
    theirs = results.filter(pc.is_in(results["person"], value_set=pa.array(busiest)))
    assert 500 < found.rows < 2_500
    assert found.results == theirs.num_rows > 0
    assert found.examples.num_rows == 5
    rows = theirs.select(found.examples.column_names).to_pylist()
    assert all(row in rows for row in found.examples.to_pylist())


def test_the_compiled_preview_joins_all_the_first_rows() -> None:
    work = Nexmark(events=2 * BATCH, seed=2)
    found = preview(COMPILED, work)
    assert (found.rows, found.results) == (2 * BATCH, whole(work).num_rows)
    assert Preview.from_arrow(found.to_arrow()) == found
    assert str(found).startswith("embedded engine, compiled: 100,000 rows, ")


def test_examples_are_of_as_many_persons_as_there_are() -> None:
    results = whole(Nexmark(events=250_000, seed=3))
    assert len(set(examples(results)["name"].to_pylist())) == 5
    of_one = results.filter(pc.equal(results["person"], results["person"][0]))
    assert examples(of_one).num_rows == min(5, of_one.num_rows)


class Clock:
    """A machine on which everything takes as long as a test says."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("penstock.cli.demo.state.time.perf_counter", made)
    return made


def record(number: int, events: int, rows: int = BATCH) -> SimpleNamespace:
    return SimpleNamespace(
        number=number,
        seconds=2.0,
        rows=rows,
        offsets=[{"events": events}] * 3,
        late=0,
        live=5,
        bytes=100,
        rebuilt=0,
        newest_us=None,
        spark_watermark_us=None,
    )


class Query:
    """A query on Spark of which a record comes with each look that is taken at it.

    steps: called one after the other; what they return is reported.
    """

    def __init__(self, *steps: Callable[[], Any], error: Exception | None = None) -> None:
        self._steps = list(steps)
        self._error = error
        self.isActive = True
        self.stops = 0

    def get(self, timeout: float) -> Any:
        if self.isActive and self._steps:
            found = self._steps.pop(0)()
            if found is not None:
                return found
            raise queue.Empty
        self.isActive = False
        return None

    def stop(self) -> None:
        self.stops += 1
        self.isActive = False

    def exception(self) -> Exception | None:
        return self._error


def followed(query: Query, state: DemoState, seconds: float) -> DemoRun:
    run = DemoRun(Nexmark(events=state.total), state, lambda change: None)
    run._follow(
        query,
        query,  # type: ignore[arg-type]  # a queue as far as it is used
        lambda: state.first_batch_at is not None and state.after_first_batch_s >= seconds,
    )
    return run


def new_state(events: int) -> DemoState:
    return DemoState("a title", events, dict.fromkeys(Nexmark.STREAMS, 0))


def later(clock: Clock, seconds: float, found: Any = None) -> Callable[[], Any]:
    def step() -> Any:
        clock.now_s += seconds
        return found

    return step


def test_the_clock_starts_with_the_first_batch(clock: Clock) -> None:
    query = Query(
        later(clock, 600),
        later(clock, 600, record(0, BATCH)),
        later(clock, 8),
        later(clock, 1, record(1, 2 * BATCH)),
        later(clock, 2),
        later(clock, 0, record(2, 3 * BATCH)),
    )
    state = new_state(9 * BATCH)
    run = followed(query, state, seconds=10)
    assert query.stops == 1
    assert run.events == 2 * BATCH
    assert state.all_rows == 2 * BATCH


def test_without_any_time_one_batch_is_joined(clock: Clock) -> None:
    query = Query(
        later(clock, 900),
        later(clock, 1, record(0, BATCH)),
        later(clock, 0),
        later(clock, 1, record(1, 2 * BATCH)),
    )
    run = followed(query, new_state(9 * BATCH), seconds=0)
    assert (query.stops, run.events) == (1, BATCH)


def test_a_query_that_fails_when_the_time_is_up_has_failed(clock: Clock) -> None:
    query = Query(later(clock, 1, record(0, BATCH)), error=RuntimeError("no room left"))
    state = new_state(9 * BATCH)
    with pytest.raises(RuntimeError, match="no room left"):
        followed(query, state, seconds=0)


class NoProcess:
    """Instead of a preview in a process of its own: one that ends at once."""

    compiles = False

    def __init__(self, kind: str, work: Nexmark) -> None:
        self._kind = kind

    def has_ended(self) -> bool:
        return True

    def preview(self) -> Preview:
        return Preview(self._kind, 7, 1, 0.5, pa.table({"name": ["Petra Okafor"]}))

    def stop(self) -> None:
        pass


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Spark and the previews as fast as can be; the demo otherwise as it is."""
    happened: list[str] = []

    @contextmanager
    def no_session(*arguments: Any) -> Iterator[tuple[None, Path]]:
        happened.append("started")
        yield None, Path()
        happened.append("stopped")

    monkeypatch.setattr(demo, "check_installed", lambda user: None)
    monkeypatch.setattr(demo, "local_spark", no_session)
    monkeypatch.setattr(demo_previews, "_Process", NoProcess)
    return happened


def batches_joined(count: int, digest: Digest | None = None) -> Callable[..., None]:
    """Instead of `DemoRun.run`: so many batches, joined by the embedded engine."""

    def run(self: DemoRun, spark: Any, directory: Path, is_over: Callable[[], bool]) -> None:
        work = Nexmark(events=count * BATCH, seed=self._work.seed)
        for number in range(count):
            self._add(record(number, min((number + 1) * BATCH, self._work.events)))  # type: ignore[arg-type]
        self.digest = digest or embedded_digest(work)
        self._state.results = self.digest.rows
        if count:
            self._state.examples = examples(whole(work))

    return run


def run_demo(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["demo", *map(str, arguments)])


def test_a_demo_whose_time_is_up_shows_compares_and_succeeds(
    monkeypatch: pytest.MonkeyPatch, no_spark: list[str]
) -> None:
    monkeypatch.setattr(DemoRun, "run", batches_joined(2))
    result = run_demo("--rows", 9 * BATCH, "--seconds", 0)
    assert result.exit_code == 0, result.output
    assert "embedded engine, interpreted: 7 rows of 8 sellers, 1 results, 0.5 s" in result.stdout
    assert "Petra Okafor" in result.stdout
    assert "stopped 0 s after the first batch" in result.stdout
    assert re.search(r"^100,000 rows joined to [1-9]\d* results$", result.stdout, re.MULTILINE)
    assert re.search(r"^same [1-9]\d* results as the embedded engine", result.stdout, re.MULTILINE)
    assert no_spark == ["started", "stopped"]


def test_a_demo_that_joined_nothing_ends_in_words(
    monkeypatch: pytest.MonkeyPatch, no_spark: list[str]
) -> None:
    monkeypatch.setattr(DemoRun, "run", batches_joined(0))
    result = run_demo("--rows", BATCH)
    assert result.exit_code == 0, result.output
    assert "same 0 results as the embedded engine" in result.stdout


def test_previews_that_fail_are_told_of_and_stop_nothing(
    monkeypatch: pytest.MonkeyPatch, no_spark: list[str]
) -> None:
    class Failing(NoProcess):
        def preview(self) -> Preview:
            raise OSError("no memory")

    monkeypatch.setattr(demo_previews, "_Process", Failing)
    monkeypatch.setattr(DemoRun, "run", batches_joined(1))
    result = run_demo("--rows", BATCH)
    assert result.exit_code == 0, result.output
    for kind in (INTERPRETED, COMPILED):
        assert f"the preview by the embedded engine, {kind}, failed: no memory" in result.stdout


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise SystemExit('out of luck')", "failed: out of luck"),
        ("print('half of it')", "failed: its output is cut short"),
        ("import os; os.kill(os.getpid(), 9)", "failed: it ended with -9"),
    ],
)
def test_what_becomes_of_a_preview_that_breaks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, message: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n')
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    state = new_state(1)
    with demo_previews.Previews(Nexmark(events=1), state, lambda change: None) as previews:
        while not previews.have_ended:
            previews.look()
            time.sleep(0.02)
    assert len(previews.failures) == 2
    assert all(message in failure for failure in previews.failures)
    assert state.waits == {}


@pytest.mark.parametrize("says", [True, False])
def test_a_preview_that_compiles_is_waited_for_as_such(
    monkeypatch: pytest.MonkeyPatch, says: bool
) -> None:
    class Compiling(NoProcess):
        compiles = says

        def has_ended(self) -> bool:
            return self._kind == INTERPRETED

    monkeypatch.setattr(demo_previews, "_Process", Compiling)
    state = new_state(1)
    with demo_previews.Previews(Nexmark(events=1), state, lambda change: None) as previews:
        previews.look()
        previews.look()
        text = state.waits["preview"].text
    assert text.startswith("kernels compile, once on this machine") == says


def test_a_preview_says_itself_that_it_compiles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    process = demo_previews._Process(COMPILED, Nexmark(events=1))
    try:
        monkeypatch.setattr(demo_previews, "_LOADED_WITHIN_S", 1e9)
        while not process.compiles:
            assert not process.has_ended()
            time.sleep(0.1)
    finally:
        process.stop()


def test_previews_are_killed_when_the_demo_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with demo_previews.Previews(Nexmark(events=1), new_state(1), lambda change: None) as previews:
        previews.look()
        assert not previews.have_ended
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_other_results_than_the_embedded_engine_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, no_spark: list[str]
) -> None:
    monkeypatch.setattr(DemoRun, "run", batches_joined(2, digest=Digest(3, 4)))
    result = run_demo("--rows", 2 * BATCH)
    assert result.exit_code == 1
    assert "the embedded engine has other results" in result.stdout


@pytest.mark.parametrize("moment", ["joining", "comparing"])
def test_ctrl_c_ends_in_words(
    monkeypatch: pytest.MonkeyPatch, no_spark: list[str], moment: str
) -> None:
    joined = batches_joined(1)

    def interrupted(self: DemoRun, spark: Any, directory: Path, is_over: Any) -> None:
        joined(self, spark, directory, is_over)
        assert not is_over()
        signal.raise_signal(signal.SIGINT)
        assert is_over()

    def cut_short(work: Nexmark) -> Digest:
        raise KeyboardInterrupt

    monkeypatch.setattr(DemoRun, "run", interrupted if moment == "joining" else joined)
    if moment == "comparing":
        monkeypatch.setattr(demo, "embedded_digest", cut_short)
    result = run_demo("--rows", 9 * BATCH)
    assert result.exit_code == 130, result.output
    assert "50,000 rows joined to" in result.stdout
    assert "interrupted: the results were not compared" in result.stdout
    assert no_spark == ["started", "stopped"]


def test_plain_lines_count_the_seconds_of_each_wait() -> None:
    console = Console(file=io.StringIO(), width=200)
    state = new_state(10)
    with shown(console, state, line_period_s=0.05):
        state.wait("spark", "Spark starts, about ten seconds")
        state.wait("preview", "kernels compile")
        until = time.monotonic() + 60
        while console.file.getvalue().count("kernels") < 3:  # type: ignore[attr-defined]
            assert time.monotonic() < until
            time.sleep(0.01)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert all(
        re.fullmatch(
            r" *[\d.]+ s  Spark starts, about ten seconds: \d s so far; "
            r"kernels compile: \d s so far",
            line,
        )
        for line in lines[1:]
    )


@pytest.mark.parametrize("preview_wait", [*demo_previews._WAITS.values(), demo_previews._COMPILES])
def test_the_panel_with_a_preview_fits_a_small_terminal(preview_wait: str) -> None:
    console = Console(
        width=80,
        height=24,
        force_terminal=True,
        file=io.StringIO(),
        record=True,
    )
    state = new_state(5_000_000)
    rows = {
        "event_time": ["00:00:20.308"] * 5,
        "name": ["Nadia Kowalski"] * 5,
        "city": ["Los Angeles"] * 5,
        "sells": ["folding telescope"] * 5,
        "price": [1_000_000] * 5,
        "bid_on": [1_010_900] * 5,
    }
    state.preview = Preview(INTERPRETED, 1_321, 1_000, 12.3, pa.table(rows))
    state.wait("spark", "Spark starts, about ten seconds")
    state.wait("preview", preview_wait)
    with shown(console, state):
        pass
    lines = console.export_text().rstrip().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert "Nadia Kowalski" in lines[-1]
    assert sum("s so far" in line for line in lines) == 2


def test_spark_that_starts_is_waited_for_and_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopped: list[bool] = []
    session = SimpleNamespace(stop=lambda: stopped.append(True))

    def slow_start(name: str, directory: Path, cores: int) -> Any:
        time.sleep(0.3)
        return session

    monkeypatch.setattr("penstock.spark.local.local_session", slow_start)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    looks: list[bool] = []
    user = SparkUser("the test", "or not")
    with local_spark("test", 1, user, lambda: looks.append(True)) as (spark, directory):
        assert spark is session
        assert directory.parent == tmp_path
    assert (looks[:1], stopped) == ([True], [True])

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), local_spark("test", 1, user, interrupt):
        pass
    assert stopped == [True, True]
    assert list(tmp_path.iterdir()) == []


def test_spark_that_does_not_start_is_told_of_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(name: str, directory: Path, cores: int) -> Any:
        raise RuntimeError("Java gateway process exited\nmore of it")

    monkeypatch.setattr("penstock.spark.local.local_session", failing)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    user = SparkUser("the test", "or leave it out")
    message = r"^Spark failed: Java gateway process exited; see its log, .*, or leave it out$"
    with pytest.raises(CommandError, match=message), local_spark("test", 1, user):
        pass


def test_a_folder_that_cannot_be_made_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    message = (
        r"^cannot make a folder for Spark in '.*nowhere': No such file or directory; set TMPDIR"
    )
    with (
        pytest.raises(CommandError, match=message),
        local_spark("test", 1, SparkUser("the test", "or leave it out")),
    ):
        pass


def test_the_second_ctrl_c_ends_at_once() -> None:
    with interrupts_noted() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_demo_of_auctions_that_end() -> None:
    result = run_demo("auctions", "--rows", 300_000, "--seed", 3)
    assert result.exit_code == 0, result.output
    found = re.search(r"300,000 rows: ([\d,]+) auctions with bids have ended", result.stdout)
    assert found
    assert int(found[1].replace(",", "")) > 1_000
    held = re.search(
        r"at most ([\d,]+) tuples were live; by windows alone, ([\d,]+)", result.stdout
    )
    assert held
    promised, by_window = (int(each.replace(",", "")) for each in held.groups())
    assert promised < by_window


@pytest.mark.parametrize("rows", [1, 100])
def test_the_demo_of_auctions_of_few_rows(rows: int) -> None:
    result = run_demo("auctions", "--rows", rows)
    assert result.exit_code == 0, result.output
    assert "0 auctions with bids have ended" in result.stdout


def test_there_is_no_other_demo() -> None:
    result = run_demo("orders")
    assert result.exit_code == 2
    assert "there is 'auctions'" in result.stderr


@pytest.mark.parametrize("rows", [1, 2, 999])
def test_the_embedded_demo_of_few_rows(rows: int) -> None:
    result = run_demo("--embedded", "--rows", rows)
    assert result.exit_code == 0, result.output
    assert "rows joined to" in result.stdout


def test_the_preview_is_a_command_whose_output_is_arrow() -> None:
    module = "penstock.cli.demo.preview_process"
    command = [sys.executable, "-P", "-m", module, INTERPRETED, "500", "1"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=250)
    assert done.stderr == b""
    found = Preview.from_arrow(pa.ipc.open_stream(done.stdout).read_all())
    assert (found.kind, found.results) == (INTERPRETED, 0)
