"""What `import penstock` loads, how long that takes, and what works without the extras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import stdtrit

from penstock.lab.sizing.student import student_quantile
from penstock.planning.fit import fitted

FOUR = "import numba, numpy, pyarrow, sqlglot"
LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"
TIMED = "import time; before = time.process_time(); {}; print(time.process_time() - before)"
ROUNDS = 5

# As if the extras were not installed.
BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("scipy", "ortools", "plotly", "pyspark", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import numpy as np, pyarrow as pa, penstock as ps
a, b = ps.Stream("a", time="ts"), ps.Stream("b", time="ts")
query = ps.WindowJoin([a, b], on="k", within="10 us")
tables = {"a": pa.table({"k": [1, 2, 2], "ts": [1, 2, 3]}), "b": pa.table({"k": [2], "ts": [5]})}
"""


def answer_of(script: str) -> str:
    """What a new process prints. Nothing is compiled: what is imported does not depend on it."""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert not ran.returncode, ran.stderr
    return ran.stdout


def loaded_by(statement: str) -> set[str]:
    return set(json.loads(answer_of(f"{statement}\n{LOADED}")))


@pytest.mark.parametrize(
    "statement", ["import penstock", "import penstock; penstock.Join; penstock.Metrics"]
)
def test_only_four_packages_are_loaded(statement: str) -> None:
    """Numba loads others of its own accord if they are there, such as a part of scipy."""
    expected = loaded_by(FOUR)
    loaded = loaded_by(statement)
    ours = {*sys.stdlib_module_names, "numba", "numpy", "pyarrow", "sqlglot", "llvmlite"}
    further = {name for name in loaded - expected if name.partition(".")[0] not in ours}
    assert {name for name in further if not name.startswith("penstock")} <= {"cython_runtime"}
    for unwanted in ("samples", "workloads", "lab", "sizing", "cli", "spark.operator"):
        assert f"penstock.{unwanted}" not in loaded


def test_the_import_takes_little_more_than_that_of_the_four() -> None:
    """In turns, so that a slow spell of the machine falls on both."""
    taken: dict[str, list[float]] = {FOUR: [], "import penstock": []}
    for _ in range(ROUNDS):
        for statement, times in taken.items():
            times.append(float(answer_of(TIMED.format(statement))))
    ratio = median(taken["import penstock"]) / median(taken[FOUR])
    assert ratio <= 1.5, taken


def test_a_query_is_described_without_the_engine() -> None:
    assert "numba" not in loaded_by("import penstock")


def test_joins_run_without_the_extras() -> None:
    """And so do the planner, budgets and bounds on the optimum."""
    script = """
limits = ps.Limits(memory="2 rows")
with query.start(limits=limits) as join:
    rows = join.push(tables).num_rows + join.finish().num_rows
print(rows, "hash" in str(query.explain()), ps.measures.recall([1, 2], [1]))
print(ps.optimum(query, tables, memory=1, method="prices").recall)
"""
    assert answer_of(BLOCKED + script).split() == ["2", "True", "0.5", "0.5"]


def test_commands_run_without_the_extras() -> None:
    script = """
from typer.testing import CliRunner
from penstock.cli import app
for command in (["--help"], ["size", "--help"], ["demo", "--help"]):
    ran = CliRunner().invoke(app, command)
    print(ran.exit_code, ran.exception)
"""
    assert answer_of(BLOCKED + script).splitlines() == ["0 None"] * 3


@pytest.mark.parametrize(
    ("call", "package", "extra"),
    [
        ("ps.optimum(query, tables, memory=1)", "ortools", "lab"),
        ("ps.measures.earth_movers([(1,)], [(2,)], distance=apart)", "scipy", "lab"),
        ("ps.measures.mac([(1,)], [(2,)], distance=apart)", "scipy", "lab"),
        ("ps.static.truncate({'x': 2, 'y': 1}, {'x': 2, 'y': 3}, keep=(2, 2))", "scipy", "lab"),
        ("query.explain().plot('/dev/null')", "plotly", "lab"),
        ("query.on_spark(a=None, b=None)", "pyspark", "spark"),
    ],
)
def test_a_missing_extra_says_what_to_install(call: str, package: str, extra: str) -> None:
    script = f"""
def apart(exact, approximate):
    return np.ones((1, 1))
try:
    {call}
except ps.MissingExtraError as error:
    print(isinstance(error, ps.PenstockError) and isinstance(error, ImportError), error)
"""
    said = answer_of(BLOCKED + script)
    assert said.startswith("True")
    assert f"needs {package}, which is not installed" in said
    assert f"pip install 'penstock[{extra}]'" in said


@pytest.mark.jit_off
def test_weights_are_those_of_non_negative_least_squares() -> None:
    random = np.random.default_rng(4)
    for _ in range(200):
        points = int(random.integers(3, 9))
        counts = random.uniform(0.1, 9, (points, 3)) * random.choice([0.01, 1, 100], 3)
        costs = np.abs(counts @ random.normal(0, 1, 3)) + random.uniform(0.1, 1, points)
        expected, missed = nnls(counts / costs[:, None], np.ones(points))
        fit = fitted(counts.tolist(), costs.tolist())
        assert np.allclose(fit.weights, expected, rtol=1e-6, atol=1e-9)
        assert fit.loss == pytest.approx(missed**2)


@pytest.mark.jit_off
@pytest.mark.parametrize("chance", [0.5, 0.95, 0.999])
def test_quantiles_are_those_of_student(chance: float) -> None:
    for degrees in (*range(1, 41), 63, 200):
        expected = stdtrit(degrees, (1 + chance) / 2)
        assert student_quantile(degrees, chance) == pytest.approx(expected, rel=1e-9)


def test_what_describes_a_query_on_spark_loads_no_kernels() -> None:
    """Spark makes the processor in a Python of the driver's, before the first batch."""
    loaded = loaded_by("import penstock.spark.processor")
    assert not {"numba", "penstock.engine", "penstock.runtime"} & loaded


def test_workers_import_spark_from_where_it_is_installed() -> None:
    """The archive that Spark puts first on their path is compiled anew by every process."""
    script = """
import glob, importlib.util, os, sys, tempfile, zipfile
home = os.path.dirname(importlib.util.find_spec("pyspark").origin)
other = os.path.join(tempfile.mkdtemp(), "pyspark.zip")
zipfile.ZipFile(other, "w").close()
archives = [*glob.glob(home + "/python/lib/*.zip"), other]
assert len(archives) > 1
sys.path[:0] = archives
from penstock.spark.daemon import _leave_archives
_leave_archives()
import pyspark.serializers
assert pyspark.serializers.__file__ == os.path.join(home, "serializers.py")
print([entry == other for entry in sys.path if entry in archives])
"""
    assert answer_of(script).strip() == "[True]", "only what is not a copy stays"
