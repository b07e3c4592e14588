"""What each of several workers of one machine is started with, and when again."""

from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from mirror import supervisor
from mirror.cli import main
from mirror.supervisor import BAD_INPUT, MAX_PAUSE_S, RestartBackoff, _Supervisor, as_worker
from runtime.configuration.config import load
from tests.commands import run_mirror_command
from tests.dc_yaml import dc_yaml


def test_who_dies_again_and_again_is_started_ever_less_often() -> None:
    backoff, pauses = RestartBackoff(), []
    for ran_s in (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 3600.0, 0.1):
        pause_s, backoff = backoff.after(ran_s)
        pauses.append(pause_s)
    assert pauses == [1, 2, 4, 8, 16, 30, 1, 2]


@pytest.mark.parametrize(("port", "ports"), [(9401, [9401, 9411, 9421]), (0, [0, 0, 0])])
def test_every_worker_has_a_metrics_port_of_its_own(
    tmp_path: Path, port: int, ports: list[int]
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(metrics={"mirror_port": port}))
    configuration = load(file)
    assert [as_worker(configuration, n).metrics.mirror_port for n in range(3)] == ports


def test_workers_beyond_the_last_port_are_refused_before_any_is_started(tmp_path: Path) -> None:
    """The system would take a port too high for one of the lowest."""
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(metrics={"mirror_port": 65520}))
    ended = run_mirror_command("run", "--workers", "3", file)
    assert ended.returncode == 2
    assert "dc.yaml: metrics.mirror_port: worker 2 would serve at 65540" in ended.stderr


@pytest.mark.parametrize("count", ["0", "65", "many"])
def test_a_wrong_number_of_workers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: str
) -> None:
    assert main(["run", "--workers", count, str(tmp_path / "dc.yaml")]) == 2
    complaint = capsys.readouterr().err
    assert "--workers" in complaint
    assert "_count" not in complaint


NO_PROCESS = -1


class Child:
    """Runs for a while and ends with its status; without one it runs on."""

    pid = 1

    def __init__(self, status: int | None) -> None:
        self._status = status

    async def wait(self) -> int:
        await trio.sleep(1 if self._status is not None else 3_600)
        return self._status or 0


@pytest.mark.parametrize(
    ("statuses", "started", "ends_all"),
    [
        ([1, BAD_INPUT, BAD_INPUT, None], 4, False),
        ([BAD_INPUT, None], 1, True),
        ([1, NO_PROCESS, 1, None], 4, False),
        ([NO_PROCESS, BAD_INPUT, None], 2, True),
    ],
)
async def test_neither_a_file_that_has_become_wrong_nor_a_lack_of_processes_ends_those_who_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,  # noqa: ARG001
    statuses: list[int | None],
    started: int,
    ends_all: bool,
) -> None:
    (tmp_path / "dc.yaml").write_text(dc_yaml())
    children: list[Child] = []

    async def open_child(_: object) -> Child:
        children.append(Child(statuses[len(children)]))
        if statuses[len(children) - 1] == NO_PROCESS:
            raise BlockingIOError("Resource temporarily unavailable")
        return children[-1]

    async def end_child(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(supervisor, "open_child", open_child)
    monkeypatch.setattr(supervisor, "end_child", end_child)
    monkeypatch.setattr(supervisor, "kill_child", cast("Any", lambda _: None))
    running = _Supervisor(load(tmp_path / "dc.yaml"), [])
    with trio.CancelScope() as all_of_them, trio.move_on_after(4 * MAX_PAUSE_S):
        await running.keep_running(0, all_of_them)
    assert len(children) == started
    assert all_of_them.cancel_called == ends_all
    assert running.status == (BAD_INPUT if ends_all else 0)
