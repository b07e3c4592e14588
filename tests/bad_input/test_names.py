"""Names from outside stay within their line, in whatever a program prints or logs."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from failover.commands.running import show
from failover.journal.facts import Facts
from failover.journal.steps import PromotionKind, StepName
from failover.view.report import summary
from mirror.cli import PROGRAM as MIRROR
from mirror.commands import check, topics
from mirror.commands.group_rows import Exactness, GroupRow
from mirror.commands.position_table import rows_table
from mirror.commands.status_choice import StatusChoice
from mirror.commands.status_table import status_parts
from mirror.topics.choice import Choice
from runtime.configuration.config import load
from runtime.program.command import Options
from runtime.program.page import page_text
from spark_audit import commands as audit
from tests.dc_yaml import dc_yaml, flow
from tests.failover.journals import ended_promotion
from tests.mirror.commands.status_reports import REPORT

CHECKOUT = Path(__file__).parents[2]
FORGED = "x\ndc2 is active (epoch 99)"
NAMES = pytest.mark.parametrize("name", [FORGED, "\x1b[2J", "\r", "\u2028", "\u202e", "\x9b1A"])
"""Lines of their own, and what moves a terminal's cursor, also as one character of C1."""


def is_harmless(page: str, lines: int) -> bool:
    return page.count("\n") == lines and page.replace("\n", "").isprintable()


@NAMES
def test_a_promotion_shows_a_group_in_its_line(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    facts: dict[StepName, Facts] = {
        StepName.DRAIN: {"records": 120},
        StepName.GROUPS_MOVE: {"positions": {name: {name: {"0": 40}}}, "left": {name: name}},
    }
    for line in summary(ended_promotion(PromotionKind.PLANNED, facts), None):
        show(line)
    assert is_harmless(capsys.readouterr().out, 4)


@NAMES
def test_the_status_of_a_mirror_shows_a_group_in_its_line(name: str) -> None:
    of_flow = REPORT["flows"][0]
    of_group = {**of_flow["groups"][0], "group": name}
    renamed = {**of_flow, "groups": [of_group], "reason": name, "faults": [name]}
    page = page_text(status_parts({**REPORT, "flows": [renamed]}, StatusChoice()))  # type: ignore[list-item]
    assert is_harmless(page, page_text(status_parts(REPORT, StatusChoice())).count("\n"))


@NAMES
async def test_tables_of_positions_and_topics_show_a_name_in_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    row = GroupRow(
        group=name,
        topic=name,
        partition=0,
        source_offset=5,
        is_last_known=False,
        source_lag=0,
        target_offset=5,
        translated=5,
        exactness=Exactness.EXACT,
        reread=0,
        skipped=None,
        applied_ms=None,
    )
    assert is_harmless(page_text([rows_table([row], 0)]), 2)

    async def choices(*_: object) -> list[Choice]:
        return [Choice(topic=name, partition_count=1, left_out=name, target_topic=name)]

    monkeypatch.setattr(topics, "_choices", choices)
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow()))
    page = page_text(await topics.topics(load(file), None, as_json=False))
    assert is_harmless(page, 3)


@NAMES
async def test_a_check_shows_a_name_in_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    async def lines(_: object) -> AsyncIterator[str]:
        yield f"would create {name}"

    monkeypatch.setattr(check, "check", lines)
    options = Options(configuration=None)
    act = next(one for one in MIRROR.commands if one.name == "check").load()
    ended = act(options)
    assert not isinstance(ended, int)
    assert await ended == 0
    assert is_harmless(capsys.readouterr().out, 1)


@NAMES
def test_an_audit_shows_a_name_in_its_line(capsys: pytest.CaptureFixture[str], name: str) -> None:
    audit.print_lines([f"lost {name}:0:17"])
    assert is_harmless(capsys.readouterr().out, 1)


@NAMES
def test_a_log_keeps_a_name_in_its_line(name: str) -> None:
    script = (
        "import logging, sys; from runtime.process.logs import configure; configure('p');"
        f"logging.getLogger('x').info('group %s', {name!r})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, check=True
    )
    assert is_harmless(ended.stderr.decode(), 1)
