"""Every command and option that a page names is one that a program has."""

from pathlib import Path

import pytest

from tests.docs.command_lines import commands_of, complaint
from tests.docs.pages import ROOT, all_pages

HISTORY = {"CHANGELOG.md"}
PAGES = [page for page in all_pages() if page.name not in HISTORY]


def complaints(page: Path) -> list[str]:
    found = []
    for line, command, is_whole in commands_of(page):
        wrong = complaint(command, is_whole=is_whole)
        if wrong is not None:
            found.append(f"{page}:{line}: `{command}`: {wrong}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_could_be_typed(page: Path) -> None:
    assert complaints(page) == []


def test_commands_are_found_where_people_look_for_them() -> None:
    found = [command for page in PAGES for _, command, _ in commands_of(page)]
    for start in ("mirror run", "failover promote", "spark-audit run", "broker up", "make drill"):
        assert any(command.removeprefix(".venv/bin/").startswith(start) for command in found)
    assert len(found) > 150


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("```\nmirror pauze dc1-dc2 dc.yaml\n```", "invalid choice: 'pauze'"),
        ("```\nmirror status dc.yaml --wach    shows it\n```", "--wach"),
        ("```\nfailover promote dc.yaml dc2 dc3\n```", "dc3"),
        ("```sh\n.venv/bin/spark-audit run dc.yaml --topics x\n```", "--topics"),
        ("```\nbroker up --broker-count 3\n```", "--broker-count"),
        ("```\nmake drills SEED=7\n```", "no target drills"),
        ("```\nmake drill SEEDS=7\n```", "knows no SEEDS"),
        ("Run `mirror restart --skipp` then.", "mirror restart has no --skipp"),
        ("Run `failover promte` then.", "failover has no command promte"),
        ("Run `broker topics delet` then.", "broker has no command topics delet"),
        ("Run `broker topics list --healthy` then.", "broker topics list has no --healthy"),
        ("Run `make drill PARTS=1` then.", "knows no PARTS"),
        ("Run `python -m tests.fresh` then.", "no module tests.fresh"),
    ],
)
def test_what_no_program_has_is_found(tmp_path: Path, text: str, wrong: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}\n")
    [found] = complaints(page)
    assert wrong in found


def test_what_stands_behind_a_command_is_not_part_of_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    lines = (
        "mirror status dc.yaml --watch     # every second",
        "mirror offsets export dc.yaml > all.csv      all groups",
        "make drill SEED=7     the same again",
    )
    page.write_text("```\n" + "\n".join(lines) + "\n```\nAnd `mirror`, `mirror status`.\n")
    assert complaints(page) == []
