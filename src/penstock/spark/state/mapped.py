"""Hot state in files that all workers of a host can map.

A state is a directory: one file for each buffer, Arrow files for the tuples that wait, and
`state.json`, which says how they make up a bucket's engine. It is taken and offered by renaming
the directory, which is atomic: to a private name when it is claimed, back under its token when
it is published. Whoever loses the race finds nothing and fills the windows from segments.

    <scratch>/penstock-<user>/<query>/<bucket>.<token>/         offered
    <scratch>/penstock-<user>/<query>/claimed.<pid>.<random>/   in use

Which directories these are: scratch.py.

Nothing in it is trusted further than it was written: a state of another boot of the machine,
a file that is missing or short, or one made for other columns is thrown away. Space is
reserved when a buffer is made, since a mapped file on a full disk kills the process.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.windows.allocator import Bytes, Heap

__all__ = ["MappedFiles", "MappedMemory"]

_STATE: Final = "state.json"
_KEPT_PER_BUCKET: Final = 2  # the current one, and that of an attempt that may yet win
_FORGOTTEN_S: Final = 3600.0  # a state nobody has asked for in so long
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class MappedMemory:
    """Buffers in files of one directory, which is private until it is published."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._names: dict[int, str] = {}
        self._next = 0
        self.is_whole = True  # whether every buffer is in a file
        self.is_attaching = False  # whether what is asked for will be replaced by what is there

    def allocate(self, size: int) -> Bytes:
        if self.is_attaching:
            return Heap().allocate(size)
        name = f"{self._next}.{secrets.token_hex(4)}"
        self._next += 1
        try:
            path = self.directory / name
            with path.open("xb+") as file:
                os.posix_fallocate(file.fileno(), 0, max(size, 1))
                return self._mapped(file.fileno(), name, size)
        except OSError:
            # No space left: go on in this process's memory, and publish nothing.
            self.is_whole = False
            return Heap().allocate(size)

    def attach(self, name: str, size: int) -> Bytes:
        """A buffer that was written here; OSError when its file is not what it was."""
        with (self.directory / name).open("rb+") as file:
            if os.fstat(file.fileno()).st_size < max(size, 1):
                raise OSError(f"{name} is shorter than the {size} bytes written to it")
            return self._mapped(file.fileno(), name, size)

    def _mapped(self, descriptor: int, name: str, size: int) -> Bytes:
        mapped = mmap.mmap(descriptor, max(size, 1))
        buffer = np.frombuffer(mapped, np.uint8)[:size]
        self._names[buffer.ctypes.data] = name
        return buffer

    def write(self, batch: pa.RecordBatch) -> str:
        """Keep a batch in a file of its own, and say in which."""
        name = f"{secrets.token_hex(8)}.arrow"
        path = str(self.directory / name)
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return name

    def read(self, name: str) -> pa.RecordBatch:
        """Such a batch, mapped."""
        return pa.ipc.open_file(pa.memory_map(str(self.directory / name))).get_batch(0)

    def name_of(self, buffer: npt.NDArray[Any]) -> str:
        """The file that holds a buffer."""
        return self._names[buffer.ctypes.data]


class MappedFiles:
    """The hot state of one query on this host."""

    def __init__(self, root: Path, query: str) -> None:
        self._home = root / query
        self._swept = 0.0

    def make(self, binding: Binding, plan: Plan) -> BucketEngine:
        return BucketEngine(binding, plan, MappedMemory(self._private()))

    def claim(self, bucket: str, token: str, binding: Binding, plan: Plan) -> BucketEngine | None:
        memory = MappedMemory(self._private(make=False))
        try:
            (self._home / f"{bucket}.{token}").rename(memory.directory)
            os.utime(memory.directory)
        except OSError:
            return None
        try:
            state = json.loads((memory.directory / _STATE).read_bytes())
            if state["boot"] != _boot() or state["made_for"] != _made_for(binding, plan):
                raise ValueError("made elsewhere")
            memory.is_attaching = True
            engine = BucketEngine(binding, plan, memory)
            memory.is_attaching = False
            engine.load(_attached(state["share"], memory))
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            shutil.rmtree(memory.directory, ignore_errors=True)
            return None
        return engine

    def publish(self, bucket: str, token: str, engine: BucketEngine) -> None:
        driver = engine.driver
        memory = driver.windows.memory
        assert isinstance(memory, MappedMemory), "made or claimed here"
        if not memory.is_whole:
            shutil.rmtree(memory.directory, ignore_errors=True)
            return
        used = {_STATE}
        made_for = _made_for(driver.binding, driver.windows.plan)
        try:
            tree = _detached(engine.dump(), memory, used)
            state = json.dumps({"boot": _boot(), "made_for": made_for, "share": tree})
            (memory.directory / _STATE).write_text(state)
            os.utime(memory.directory)  # when it was last used: renaming does not record it
            for file in memory.directory.iterdir():
                if file.name not in used:
                    file.unlink()
            memory.directory.rename(self._home / f"{bucket}.{token}")
            self._clean_up(bucket)
        except OSError:
            # Somebody cleaned the scratch away: the next batch fills from segments.
            shutil.rmtree(memory.directory, ignore_errors=True)

    def _private(self, make: bool = True) -> Path:
        directory = self._home / f"claimed.{os.getpid()}.{secrets.token_hex(8)}"
        # Without it nothing is found here, and nothing is published.
        with suppress(OSError):
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if make:
                directory.mkdir(mode=0o700)
        return directory

    def _clean_up(self, bucket: str) -> None:
        """Remove what failed attempts, dead workers and ended queries left behind."""
        for state in _newest_first(self._home.glob(f"{bucket}.*"))[_KEPT_PER_BUCKET:]:
            shutil.rmtree(state, ignore_errors=True)
        now = time.time()
        if now - self._swept < _FORGOTTEN_S / 60:
            return
        self._swept = now
        for state in self._home.parent.glob("*/*"):
            kind, _, rest = state.name.partition(".")
            dead = kind == "claimed" and not Path(f"/proc/{rest.split('.')[0]}").exists()
            with suppress(OSError):
                if dead or now - state.stat().st_mtime > _FORGOTTEN_S:
                    shutil.rmtree(state, ignore_errors=True)
        for query in self._home.parent.iterdir():
            driver, dot, _ = query.name.partition(".")
            if dot and not Path(f"/proc/{driver}").exists():
                shutil.rmtree(query, ignore_errors=True)
            with suppress(OSError):
                query.rmdir()  # only if it is empty


def _newest_first(states: Iterator[Path]) -> list[Path]:
    aged = []
    for state in states:
        with suppress(OSError):
            aged.append((state.stat().st_mtime, state))
    return [state for _, state in sorted(aged, reverse=True)]


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _made_for(binding: Binding, plan: Plan) -> str:
    """What windows look like inside depends on: columns, query and plan."""
    return repr((binding.query.describe(), [str(each) for each in binding.schemas], plan))


def _detached(tree: Any, memory: MappedMemory, used: set[str]) -> Any:
    """A dump with file names in the place of buffers and batches."""
    if isinstance(tree, np.ndarray):
        name = memory.name_of(tree)
        used.add(name)
        return {"file": name, "dtype": tree.dtype.str, "shape": list(tree.shape)}
    if isinstance(tree, pa.RecordBatch):
        name = memory.write(tree)
        used.add(name)
        return {"batch": name}
    if isinstance(tree, dict):
        return {key: _detached(each, memory, used) for key, each in tree.items()}
    if isinstance(tree, list):
        return [_detached(each, memory, used) for each in tree]
    return tree


def _attached(tree: Any, memory: MappedMemory) -> Any:
    """The reverse of `_detached`."""
    if isinstance(tree, dict):
        if tree.keys() == {"file", "dtype", "shape"}:
            dtype = np.dtype(tree["dtype"])
            size = int(np.prod(tree["shape"])) * dtype.itemsize
            return memory.attach(tree["file"], size).view(dtype).reshape(tree["shape"])
        if tree.keys() == {"batch"}:
            return memory.read(tree["batch"])
        return {key: _attached(each, memory) for key, each in tree.items()}
    if isinstance(tree, list):
        return [_attached(each, memory) for each in tree]
    return tree
