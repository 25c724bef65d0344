"""Kernels: what is compiled, that it is kept, and that it can be brought to another machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numba import config
from typer.testing import CliRunner

import penstock as ps
from penstock.cli import app
from penstock.kernels import jit, kernel_pack
from penstock.kernels.jit import kernel_cache
from penstock.kernels.kernel_pack import take_pack, write_pack
from penstock.kernels.loop import refill
from penstock.kernels.matches import first_matches, mark

COUNTED = """
import warnings
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass
event.register("numba:compile", Listener())
import numpy as np, pyarrow as pa, penstock as ps
from penstock.kernels import kernel_pack, ring
from penstock.kernels.budget import queue
from penstock.kernels.index import bplus_tree, directory
query = ps.WindowJoin([ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="9 us")
table = pa.table({"k": np.arange(300) % 7, "ts": np.arange(300)})
def rows():
    with query.start() as join:
        return join.push({"a": table, "b": table}).num_rows + join.finish().num_rows
"""


def said_by(script: str, cache: Path, *options: str) -> list[str]:
    """What a new process prints that has this cache of kernels."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    for name in ("NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR"):
        environment.pop(name, None)
    ran = subprocess.run(
        [sys.executable, *options, "-c", COUNTED + script],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert not ran.returncode, ran.stderr
    return ran.stdout.split()


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of joins by a key, from the cache of this run."""
    table = pa.table({"k": np.arange(300) % 7, "ts": np.arange(300)})
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    with ps.WindowJoin(streams, on="k", within="9 us").start() as join:
        join.push({"a": table, "b": table})
        join.finish()
    file = tmp_path_factory.mktemp("pack") / kernel_pack.PACK_NAME
    assert write_pack(file) > 5
    return file


@pytest.mark.skipif(config.DISABLE_JIT, reason="about what is compiled")
@pytest.mark.parametrize("how", ["inner", "semi", "full"])
def test_arrays_that_are_read_only_or_have_gaps_are_no_reason_to_compile(how: str) -> None:
    """What is restored comes from buffers of Arrow, and some tuples of it are left out."""
    streams = [ps.Stream("a", time="ts", window="2 rows"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(streams, on="k", within="900 us", how=how)
    keys = pa.array([None if number % 5 == 0 else number % 7 for number in range(300)])
    table = pa.table({"k": keys, "ts": np.arange(300)})
    join = query.start()
    join.push(a=table, b=table)
    restored = query.restore(join.snapshot())
    restored.push(a=table.slice(200), b=table.slice(200))
    for kernel in (refill, mark, first_matches):
        states = [signature[0] for signature in kernel.signatures]
        assert len(states) == len(set(states)), kernel


def test_what_a_join_cannot_reach_is_not_compiled(tmp_path: Path) -> None:
    """Neither trees for a join by a key, nor shedding for one without limits."""
    script = """
from penstock.engine.driver import Driver
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.planning.case import plan_for
state = Driver(Binding.of(query), plan_for(query, None, None, None, None)).windows.state
ring.expire_all(state, 0)
print("expire_all" in compiled, "expire" in compiled)
print(bplus_tree.remove._called is None, queue.leave._called is None)
"""
    assert said_by(script, tmp_path) == ["True"] * 4


def test_a_kernel_that_another_one_calls_is_only_kept_within_it(tmp_path: Path) -> None:
    script = """
print(directory.entry_words(2))
from penstock.kernels.kernel_pack import kernel_files
print(*(file.name.partition("-")[0] for file in kernel_files()))
"""
    assert said_by(script, tmp_path) == ["2", "penstock.kernels.index.directory.entry_words"]


def test_a_kept_kernel_is_not_compiled_again_unless_its_file_is_damaged(tmp_path: Path) -> None:
    script = "print(directory.entry_words(2), len(compiled) > 0)"
    assert said_by(script, tmp_path) == ["2", "True"]
    assert said_by(script, tmp_path) == ["2", "False"]
    (file,) = tmp_path.rglob("penstock.kernels.index.directory.*")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert said_by(script, tmp_path) == ["2", "True"]
    assert said_by(script, tmp_path) == ["2", "False"]


@pytest.mark.slow
def test_the_cache_does_not_depend_on_where_penstock_is(tmp_path: Path) -> None:
    """A copy of the sources elsewhere finds the same kernels."""
    script = "print(directory.entry_words(2), len(compiled) > 0)"
    said_by(script, tmp_path / "cache")
    copy = tmp_path / "elsewhere" / "penstock"
    shutil.copytree(Path(ps.__file__).parent, copy)
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED + script + "; print(ps.__file__)"],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PYTHONPATH": str(copy.parent),
        },
        check=True,
    )
    assert ran.stdout.split() == ["2", "False", str(copy / "__init__.py")]


def test_a_pack_saves_all_compilation(pack: Path, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
print(kernel_pack.take_pack(Path({str(pack)!r})) > 5, rows(), len(compiled))
"""
    taken, rows, compiled = said_by(script, tmp_path, "-W", "error")
    assert (taken, compiled) == ("True", "0")
    assert int(rows) > 0


def changed(pack: Path, target: Path, **manifest: object) -> Path:
    """The pack with another manifest."""
    with zipfile.ZipFile(pack) as given, zipfile.ZipFile(target, "w") as made:
        whole = json.loads(given.read("manifest.json"))
        made.writestr("manifest.json", json.dumps({**whole, **manifest}))
        for name in whole["files"]:
            made.writestr(name, given.read(name))
    target.chmod(0o600)
    return target


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As of a machine that has compiled nothing, with the name that a pack must fit."""
    here = kernel_cache()
    assert here is not None
    empty = tmp_path / "empty" / here.name
    empty.mkdir(parents=True)
    monkeypatch.setattr(kernel_pack, "kernel_cache", lambda: empty)
    return empty


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ({"processor": "('riscv64', 'another')"}, "made for another processor"),
        ({"kernels": "kernels-0"}, "made by another version of penstock, numba or Python"),
        ({"format": 2}, "its format is 2, not 1"),
        ({"files": {"../outside": "0"}}, "no name of a kernel"),
    ],
)
def test_a_foreign_pack_is_refused(
    pack: Path, tmp_path: Path, empty_cache: Path, manifest: dict[str, object], why: str
) -> None:
    other = tmp_path / "other.zip"
    if "files" in manifest:
        with zipfile.ZipFile(pack) as given, zipfile.ZipFile(other, "w") as made:
            whole = json.loads(given.read("manifest.json"))
            made.writestr("manifest.json", json.dumps({**whole, **manifest}))
        other.chmod(0o600)
    else:
        changed(pack, other, **manifest)
    with pytest.warns(ps.PlanWarning, match=why):
        assert take_pack(other) == 0
    assert not list(empty_cache.iterdir())


def test_a_damaged_pack_is_refused_whole(pack: Path, tmp_path: Path, empty_cache: Path) -> None:
    """Also where its digests are right but a kernel's own is not, and where bytes are missing."""
    with zipfile.ZipFile(pack) as given:
        whole = json.loads(given.read("manifest.json"))
    name = sorted(whole["files"])[-1]
    files = {**whole["files"], name: hashlib.sha256(b"no kernel").hexdigest()}
    digest = changed(pack, tmp_path / "digest.zip", files=files)
    with pytest.warns(ps.PlanWarning, match="is damaged"):
        assert take_pack(digest) == 0
    cut = tmp_path / "cut.zip"
    cut.write_bytes(pack.read_bytes()[:-100])
    cut.chmod(0o600)
    with pytest.warns(ps.PlanWarning, match="are not used"):
        assert take_pack(cut) == 0
    assert not list(empty_cache.iterdir())


def test_a_pack_that_others_may_write_to_is_refused(
    pack: Path, tmp_path: Path, empty_cache: Path
) -> None:
    """Its code would be run with the rights of this user."""
    assert pack.stat().st_mode & 0o777 == 0o600
    shared = tmp_path / "shared.zip"
    shared.write_bytes(pack.read_bytes())
    shared.chmod(0o666)
    with pytest.warns(ps.PlanWarning, match="others may write to it, its mode is 666"):
        assert take_pack(shared) == 0
    assert not list(empty_cache.iterdir())
    assert take_pack(pack) > 5
    assert take_pack(pack) == 0  # they are there


def test_the_command_says_what_is_compiled_and_packs_it(
    tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = CliRunner().invoke(app, ["kernels"], env={"COLUMNS": "300"})
    assert told.exit_code == 0, told.output
    assert "compiled kernels, " in told.stdout
    monkeypatch.undo()
    file = tmp_path / "kernels.zip"
    packed = CliRunner().invoke(app, ["kernels", "pack", "-o", str(file)], env={"COLUMNS": "300"})
    assert packed.exit_code == 0, packed.output
    assert f'spark.addArtifacts("{file}", file=True)' in packed.stdout
    assert "kernels of joins by a key" in packed.stderr
    monkeypatch.setattr(kernel_pack, "kernel_cache", lambda: empty_cache)
    assert take_pack(file) > 5


def test_a_pack_that_cannot_be_written(tmp_path: Path) -> None:
    nowhere = tmp_path / "none" / "kernels.zip"
    refused = CliRunner().invoke(app, ["kernels", "pack", "-o", str(nowhere)])
    assert refused.exit_code == 2
    assert "name a file in a directory you may write to" in " ".join(refused.output.split())


def test_a_cache_that_was_removed_meanwhile_is_no_error(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "kernel_cache", lambda: empty_cache / "gone")
    jit.announce_compilation.__wrapped__("joins of a test")
