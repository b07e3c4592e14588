"""Each runbook has its five parts, and commands to look, to act and to know."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT, blocks
from tests.interop.runbook_samples import samples_of

RUNBOOKS: Final = ROOT / "docs" / "runbooks"
PARTS: Final = (
    *("How you notice", "Look first", "Do"),
    *("How you know that it is done", "What not to do"),
)
PAGES: Final = sorted(page for page in RUNBOOKS.glob("*.md") if page.stem != "index")


def commands(text: str) -> list[str]:
    """Return the lines of all blocks of commands."""
    return [line for block in blocks(text) if block.language != "text" for line in block.lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_a_runbook_has_its_five_parts_with_commands(page: Path) -> None:
    text = page.read_text()
    assert tuple(re.findall(r"^## (.*)$", text, re.MULTILINE)) == PARTS
    for title in ("Look first", "How you know that it is done"):
        assert commands(text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]), title


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_each_command_has_a_sample_of_what_it_says(page: Path) -> None:
    text = page.read_text()
    given = {re.sub(r"  # \d: .*$", "", line) for line in commands(text)}
    samples = samples_of(text)
    assert samples.keys() == given, "`python -m tests.interop.runbook_samples` writes them"
    assert all(samples.values())


def test_every_runbook_is_in_the_list() -> None:
    listed = re.findall(r"\]\((\S+\.md)\)", (RUNBOOKS / "index.md").read_text())
    assert sorted(listed) == [page.name for page in PAGES]


def test_a_witness_is_restored_by_the_commands_that_a_test_gives() -> None:
    """tests/failover/test_lost_memory.py gives them to a witness that was wiped."""
    longer = commands((ROOT / "docs" / "operate" / "lost-witness.md").read_text())
    assert commands((RUNBOOKS / "witness-lost.md").read_text()) == longer
