"""`penstock kernels`: what is compiled on this machine, and a pack of it for others."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pyarrow as pa
import typer

from penstock.cli.views.display import consoles, failures_shown, say
from penstock.errors import PlanWarning
from penstock.files.command_error import CommandError, first_line
from penstock.kernels.jit import kernel_cache
from penstock.kernels.kernel_pack import PACK_NAME, kernel_files, processor_name, write_pack
from penstock.model.limits import Limits
from penstock.model.stream import Stream
from penstock.window_join import WindowJoin

__all__ = ["kernels"]

_ROWS: Final = 400
_LIMITS: Final = "50 rows"

kernels = typer.Typer(help="Compiled kernels: where they are, and how other machines get them.")


@kernels.callback(invoke_without_command=True)
def info(context: typer.Context) -> None:
    """Say which kernels are compiled, where, and for which processor."""
    if context.invoked_subcommand is not None:
        return
    with failures_shown():
        out, _ = consoles()
        cache = kernel_cache()
        if cache is None:
            raise CommandError(
                "compiled kernels cannot be kept, so every process compiles; set XDG_CACHE_HOME "
                "to a directory of your own that can be written to"
            )
        files = kernel_files()
        size = sum(file.stat().st_size for file in files)
        say(out, f"{len(files)} compiled kernels, {size / 1e6:.1f} MB, in {cache}")
        say(out, f"for the processor {processor_name()}")


@kernels.command("pack")
def pack(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ] = Path(PACK_NAME),
    every: Annotated[
        bool, typer.Option("--all", help="Compile for joins by order and under limits as well.")
    ] = False,
) -> None:
    """Compile kernels, and write them to a file that Spark brings to its executors.

    Kernels of joins by a key are compiled if need be, and all that are compiled are packed.
    """
    with failures_shown():
        out, errors = consoles()
        for by_key, limited in [(True, False), (True, True), (False, False), (False, True)]:
            if every or (by_key and not limited):
                what = f"joins {'by a key' if by_key else 'by order'}"
                say(errors, f"kernels of {what}{', under limits' if limited else ''}")
                _run(by_key, limited)
        try:
            count = write_pack(output)
        except OSError as error:
            raise CommandError(
                f"cannot write {str(output)!r}: {first_line(error)}; name a file in a directory "
                "you may write to"
            ) from error
        say(out, f"{count} kernels in {output}; before a query starts:")
        say(out, f'    spark.addArtifacts("{output}", file=True)')


def _run(by_key: bool, limited: bool) -> None:
    """Run joins that take windows and indexes through all they do: they grow, are left, saved and
    filled again, and keep apart the tuples that have met others from those that have not."""
    streams = [Stream("a", time="ts"), Stream("b", time="ts")]
    # Text, for what hashes keys.
    condition = {"on": ["k", "s"]} if by_key else {"where": "abs(a.k - b.k) <= 1"}
    limits = Limits(_LIMITS) if limited else None
    for how in ("inner", "semi") if limited else ("inner", "semi", "full"):
        query = WindowJoin(streams, **condition, within="100 us", how=how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlanWarning)
            join = query.start(limits=limits)
            for begin in range(0, 3 * _ROWS, _ROWS):
                times = np.arange(begin, begin + _ROWS)
                keys = times % 40
                table = pa.table({"k": keys, "s": keys.astype(str).tolist(), "ts": times})
                join.push({"a": table, "b": table})
            query.restore(join.snapshot(), limits=limits).finish()
