"""Compiled kernels that a session distributes: each executor takes them once.

The file is `penstock-kernels.zip`, as `penstock kernels pack` writes it, brought by
`spark.addArtifacts(..., file=True)`, `SparkContext.addFile` or `--files`.
"""

from __future__ import annotations

import functools
from pathlib import Path

from pyspark import SparkFiles

from penstock.kernels.kernel_pack import PACK_NAME, take_pack

__all__ = ["take_distributed"]


@functools.cache
def take_distributed() -> int:
    """Take the kernels of the session's pack, if it has one, before any is compiled. Returns how
    many were new on this machine. Called in workers."""
    if not SparkFiles._is_running_on_worker:
        return 0
    pack = Path(SparkFiles.getRootDirectory()) / PACK_NAME
    return take_pack(pack) if pack.is_file() else 0
