"""A plan a user can read: as values, as text, as JSON, as a picture, and from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import penstock as ps
from penstock.cli import app
from penstock.errors import PlanError
from penstock.planning.explain.explanation import Explanation
from penstock.planning.explain.plot import cost_lines
from penstock.planning.explain.rendering import as_text, rendered

QUERY = ps.WindowJoin(
    [ps.Stream("orders", time="at"), ps.Stream("payments", time="at", window="1 hour")],
    on="order_id",
    within="10 minutes",
)
WORKLOAD = ps.Workload(
    {"orders": 1000, "payments": 10},
    distinct={"orders": 60_000, "payments": 30_000},
    row_bytes={"orders": 80, "payments": 40},
)


def explain(**options: Any) -> Explanation:
    return QUERY.explain(WORKLOAD, **{"weights": "kang2003", **options})


# Values.


def test_what_an_explanation_says() -> None:
    told = explain()
    assert told.indexes == {"orders": "hash", "payments": "t_tree"}
    assert told.orders == {"orders": ("payments",), "payments": ("orders",)}
    assert told.cost == pytest.approx(sum(each.total for each in told.breakdown.values()))
    assert (told.unit, told.weights, told.model) == ("s", "kang2003", "kang2003")
    assert told.tuples == {"orders": 600_000, "payments": 36_000}
    assert told.live_rows == told.tuples
    assert told.live_bytes["payments"] > 36_000 * 40
    assert told.expire == "eager"
    assert told.expire_costs["eager"] == told.cost
    assert set(told.expire_costs) == {"eager", "on_probe", "periodic"}
    assert not told.is_assumed
    assert told.budget is None


def test_runners_up_are_other_plans_and_cost_more() -> None:
    told = explain()
    costs = [each.cost for each in told.runners_up]
    assert costs == sorted(costs)
    assert min(costs) >= told.cost
    plans = [tuple(each.indexes.items()) for each in told.runners_up]
    assert len(set(plans)) == len(plans) == 5
    assert tuple(told.indexes.items()) not in plans


def test_the_plan_changes_at_a_crossover_and_not_before() -> None:
    told = explain()
    (crossover,) = told.crossovers
    assert crossover.streams == ("orders", "payments")
    assert crossover.ratio == 100
    assert crossover.below is not None
    assert crossover.then_below is not None
    assert crossover.then_below.indexes != told.indexes
    for ratio, indexes in (
        (crossover.below * 1.0001, told.indexes),
        (crossover.below / 1.0001, crossover.then_below.indexes),
    ):
        rates = {"orders": 1010 * ratio / (1 + ratio), "payments": 1010 / (1 + ratio)}
        workload = ps.Workload(rates, distinct={"orders": 60_000, "payments": 30_000})
        assert QUERY.explain(workload, weights="kang2003").indexes == indexes


def test_what_is_fixed_is_kept_and_costed() -> None:
    told = explain(indexes={"orders": "t_tree"}, probe_orders={"orders": ["payments"]})
    assert told.indexes["orders"] == "t_tree"
    assert told.cost > explain().cost


def test_several_paths_have_several_indexes() -> None:
    query = ps.WindowJoin(
        [ps.Stream(name, time="at") for name in "abc"],
        where="a.x = b.x AND b.y < c.y",
        within="1 minute",
    )
    told = query.explain()
    assert told.is_assumed
    assert told.indexes["b"] == ("hash", "bplus_tree")
    assert "hash + bplus_tree" in str(told)


@pytest.mark.parametrize(
    ("query", "how", "why"),
    [
        (QUERY, "by key", "one bucket"),
        (ps.WindowJoin(QUERY.streams, where="orders.x < payments.x", within="1 s"),
         "everywhere", "no key"),
        (ps.WindowJoin([ps.Stream(name, time="at") for name in "ab"], on="k", within="9 rows"),
         "one bucket", "in one order"),
    ],
)  # fmt: skip
def test_how_it_is_divided_on_spark(query: ps.WindowJoin, how: str, why: str) -> None:
    told = query.explain()
    assert told.partitioning.how == how
    assert why in told.partitioning.reason


def test_a_budget_is_split() -> None:
    shared = explain(limits=ps.Limits(memory="63600 rows"))
    assert shared.budget is not None
    assert shared.budget["orders"].rows == pytest.approx(60_000)
    assert shared.budget["orders"].wanted_rows == 600_000
    assert shared.budget["payments"].rows == pytest.approx(3_600)
    fixed = explain(limits=ps.Limits(memory="20000 rows", pool="fixed"))
    assert fixed.budget is not None
    assert fixed.budget["payments"].rows == 10_000
    by_size = explain(limits=ps.Limits(memory="1 MiB"))
    assert sum(by_size.live_bytes.values()) == pytest.approx(1 << 20, rel=0.6)
    served = explain(limits=ps.Limits(service_rate=200))
    assert served.budget is not None
    assert sum(each.rate for each in served.budget.values()) == pytest.approx(200)
    assert "190 of 1,000 tuples/s" in str(served)


def test_many_streams() -> None:
    names = "abcdef"
    query = ps.WindowJoin([ps.Stream(name, time="at") for name in names], on="k", within="1 s")
    told = query.explain(ps.Workload(dict.fromkeys(names, 5.0), distinct=9))
    assert not told.crossovers
    assert "not looked for" in str(told)


# Text and JSON.

SHOWN = """\
6.658 s for each second of event time; weights 'kang2003'

the plan
 stream       rate  window       tuples  index   its arrivals probe
 orders    1,000/s  10 minutes  600,000  hash    payments
 payments     10/s  1 hour       36,000  t_tree  orders
"""


def test_the_text_of_an_explanation() -> None:
    text = str(explain())
    assert text.startswith(SHOWN)
    for part in ("what it costs", "runners-up", "where the plan would change", "the rest"):
        assert f"\n\n{part}\n" in text
    assert "\x1b" not in text
    assert all(line == line.rstrip() and len(line) <= 100 for line in text.splitlines())


def test_the_text_in_the_documentation_is_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "planning.md"
    _, section = page.read_text(encoding="utf-8").split("## A plan you can read")
    code, shown = re.findall(r"```(?:python|text)\n(.*?)\n```", section, re.DOTALL)[:2]
    told: dict[str, Any] = {}
    exec(code.replace("print(plan)", ""), told)  # noqa: S102  the page's own example
    assert str(told["plan"]) == shown


def test_costs_are_told_in_units_that_suit_them() -> None:
    assert re.match(r"[\d.]+ µs for each second of event time, [\d.e-]+ % of one core", str(
        QUERY.explain(WORKLOAD, weights="penstock")
    ))  # fmt: skip
    assert " tuples for each second" in str(QUERY.explain(WORKLOAD, weights="tuples"))
    assert "no workload was given" in as_text(QUERY.explain())


def test_an_explanation_is_json() -> None:
    told = explain(limits=ps.Limits(memory="1000 rows"))
    plain = json.loads(told.to_json())
    assert plain == told.to_dict()
    assert plain["indexes"] == dict(told.indexes)
    assert plain["orders"] == {"orders": ["payments"], "payments": ["orders"]}
    assert plain["cost"] == told.cost
    assert set(plain["breakdown"]["orders"]) == {"probe", "insert", "expire"}
    assert plain["budget"]["orders"]["wanted_rows"] == 600_000
    assert plain["crossovers"][0]["streams"] == ["orders", "payments"]
    assert "case" not in plain
    assert rendered(told)


# The picture.


def test_a_plot_has_all_combinations_and_crossovers(tmp_path: Path) -> None:
    told = explain()
    lines = cost_lines(told)
    assert len(lines.costs) == 16
    middle = len(lines.ratios) // 2
    assert lines.ratios[middle] == 100
    assert min(costs[middle] for costs in lines.costs.values()) == pytest.approx(told.cost)
    assert lines.crossovers
    (crossover,) = told.crossovers
    near = [ratio for ratio, _ in lines.crossovers]
    for ratio in (crossover.below, crossover.above):
        if ratio is not None and lines.ratios[0] < ratio < lines.ratios[-1]:
            assert ratio == pytest.approx(min(near, key=lambda each: abs(each - ratio)), rel=1e-3)
    path = told.plot(tmp_path / "costs.html")
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "hash \\u002f t_tree" in page or "hash / t_tree" in page
    assert '"crossovers"' in page


def test_a_plot_of_two_of_three_streams(tmp_path: Path) -> None:
    query = ps.WindowJoin([ps.Stream(name, time="at") for name in "abc"], on="k", within="9 s")
    told = query.explain(ps.Workload({"a": 1, "b": 10, "c": 100}, distinct=30))
    assert cost_lines(told, ("c", "a")).streams == ("c", "a")
    told.plot(tmp_path / "costs.html", streams=("b", "c"))
    with pytest.raises(PlanError, match="two of"):
        told.plot(tmp_path / "costs.html", streams=("b", "b"))
    with pytest.raises(PlanError, match="cannot write"):
        told.plot(tmp_path / "no" / "costs.html")
    still = query.explain(ps.Workload({"a": 0, "b": 10, "c": 100}, distinct=30))
    with pytest.raises(PlanError, match="no ratio"):
        still.plot(tmp_path / "costs.html")


# The command.

ORDERS = "orders,rate=1000,window=10 minutes,distinct=60000,bytes=80"
PAYMENTS = "payments,rate=10,window=1 hour,distinct=30000,bytes=40"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["explain", *(str(argument) for argument in arguments)])


def test_explain_streams_by_hand(tmp_path: Path) -> None:
    plot = tmp_path / "costs.html"
    by_hand = ("--stream", ORDERS, "--stream", PAYMENTS, "--on", "order_id")
    shown = run(*by_hand, "--weights", "kang2003", "--plot", plot)
    assert shown.exit_code == 0, shown.output
    assert str(explain()) in shown.output
    assert plot.stat().st_size > 1000
    again = run(*by_hand, "--weights", "kang2003", "--json")
    assert json.loads(again.stdout) == explain().to_dict()
    assert run(*by_hand, "--plot", plot).exit_code == 2  # it is there already
    assert run(*by_hand, "--plot", plot, "--force").exit_code == 0


def test_explain_with_what_is_fixed_and_limited() -> None:
    shown = run(
        "--stream", "a,rate=5,index=scan,probes=c+b", "--stream", "b,rate=5", "--stream",
        "c,rate=5", "--within", "1 minute", "--where", "a.x = b.x AND b.y < c.y",
        "--selectivity", "a,b=0.01", "--selectivity", "b,c=0.5", "--memory", "90 rows", "--json",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    plain = json.loads(shown.stdout)
    assert plain["indexes"]["a"] == "scan"
    assert plain["orders"]["a"] == ["c", "b"]
    assert plain["budget"]["c"]["rows"] == pytest.approx(30)


def test_explain_files_and_what_was_measured_of_them(tmp_path: Path) -> None:
    files = []
    for name, gap in (("left", 1), ("right", 10)):
        table = pa.table(
            {
                "ts": pa.array(
                    [n * gap * 1_000_000 for n in range(600 // gap)], pa.timestamp("us")
                ),
                "k": [n % 20 for n in range(600 // gap)],
            }
        )
        files.append(tmp_path / f"{name}.parquet")
        pq.write_table(table, files[-1])
    options = ("--on", "k", "--within", "1 minute")
    shown = run(*files, *options, "--time", "ts", "--json")
    assert shown.exit_code == 0, shown.output
    plain = json.loads(shown.stdout)
    assert plain["rates"]["left"] == pytest.approx(1, rel=0.01)
    assert plain["rates"]["right"] == pytest.approx(0.1, rel=0.05)
    workload = tmp_path / "workload.json"
    profiled = CliRunner().invoke(
        app, ["profile", *map(str, files), *options, "--time", "ts", "-o", str(workload)]
    )
    assert profiled.exit_code == 0, profiled.output
    again = run("--workload", workload, *options, "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == plain
    twice = run("--workload", workload, "--stream", "left,rate=1", "--stream", "right", *options)
    assert "give one or the other" in twice.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the streams have no key"),
        (["--on", "k"], "a join has two streams or more, got none"),
        (["a.parquet", "--on", "k"], "got one file"),
        (["a.parquet", "b.parquet", "--on", "k"], "give --time"),
        (["a.parquet", "b.parquet", "--on", "k", "--time", "t"], "give --within"),
        (["a.parquet", "b.parquet", "--on", "k", "--stream", "a"], "give one or the other"),
        (["--stream", "a", "--stream", "b", "--on", "k"], "'a' has no window"),
        (["--stream", "a", "--stream", "a", "--on", "k"], "'a' twice"),
        (["--stream", "rate=1", "--on", "k"], "begins with a name"),
        (["--stream", "a,colour=red", "--on", "k"], "cannot read 'colour=red'"),
        (["--stream", "a,rate=1,rate=2", "--on", "k"], "rate= twice"),
        (["--stream", "a,rate=fast", "--on", "k"], "must be a number"),
        (["--stream", "a,rate=-1", "--stream", "b,rate=1", "--on", "k"], "0 or more"),
        (["--stream", "a,rate=1", "--stream", "b", "--on", "k"], "rate of ['b'] is not known"),
        (["--stream", "a,rate=1", "--stream", "b,rate=1", "--on", "k", "--within", "1 s"],
         "distinct"),
        (["--stream", "a,index=hosh", "--stream", "b", "--on", "k", "--within", "1 s"],
         "no index is called 'hosh'"),
        (["--stream", "a", "--stream", "b", "--on", "k", "--within", "1 s", "--weights", "x"],
         "no weights are called 'x'"),
        (["--stream", "a", "--stream", "b", "--on", "k", "--within", "1 s", "--horizon", "1 s"],
         "--horizon goes with rates"),
        (["--stream", "a", "--stream", "b", "--on", "k", "--selectivity", "a=1"],
         "cannot read --selectivity"),
        (["--workload", "nowhere.json", "--on", "k"], "cannot read 'nowhere.json'"),
    ],
)  # fmt: skip
def test_what_explain_refuses(arguments: list[str], told: str) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert told in " ".join(refused.output.split())
