"""The examples of README and of the pages in docs run as they stand, one after the other.

Pages whose examples have tests of their own are left out: measures, optimum, static, and spark.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.thoroughness import often

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/limits.md",
    "docs/planning.md",
    "docs/punctuations.md",
    "docs/semantics.md",
    "docs/sizing.md",
]
QUICK = ("README.md", "docs/punctuations.md", "docs/semantics.md")


@pytest.mark.timeout(900)  # kernels of many kinds compile, and a recording is sized
@pytest.mark.parametrize(
    "page", often(PAGES, "README.md", "docs/punctuations.md", "docs/semantics.md")
)
def test_the_examples_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    embedded = [block for block in blocks if "on_spark" not in block]
    assert embedded
    names: dict[str, Any] = {}
    for number, block in enumerate(embedded):
        exec(compile(block, f"{page}, example {number + 1}", "exec"), names)  # noqa: S102


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md")),
    ],
)
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    paths = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    homes = (ROOT, ROOT / "src/penstock")
    missing += [path for path in paths if not any((home / path).exists() for home in homes)]
    assert not missing
