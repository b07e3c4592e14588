"""An error that nobody has foreseen stops one partition, group or topic, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from mirror.forward import source as source_module
from mirror.forward import target as target_module
from mirror.start import positioning as positioning_module
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.retries import Retries
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work
from tests.mirror.whole_flow import batch_at, until, values, whole_flow
from wire.hot.fetch import read_answer

LOG = [batch_at(0, b"a"), batch_at(1, b"b")]


def failing_once(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same, but that the first call raises."""
    calls = []

    def fails(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError("planted")
        return original(*arguments, **named)

    return fails


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (source_module, "route"),
        (target_module, "request_parts"),
        (positioning_module, "decide_start"),
        (Retries, "succeed"),
        (MirroredPartition, "heard"),
    ],
)
async def test_a_partition_that_meets_an_error_stops_by_name_and_goes_on_when_restarted(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, failing_once(original))
    if name == "request_parts":  # the batch is tried alone behind it
        monkeypatch.setattr(owner, name, failing_once(failing_once(original)))
    async with whole_flow(list(LOG), 2, chunk_bytes=100_000) as whole:
        partition = whole.partition
        await until(lambda: partition.state is PartitionState.FAILED)
        assert "ZeroDivisionError: planted" in partition.status.reason
        assert any(record.exc_info for record in caplog.records), "no traceback was logged"
        await until(lambda: partition.in_flight.is_settled)
        assert whole.flow.budget.total == 0
        partition.retry("restarted", 0)
        whole.flow.wakeups.position_more.wake()
        await until(lambda: values(whole.target) == [b"a", b"b"])


async def test_an_error_in_a_fetchers_own_work_ends_no_fetcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetch = failing_once(read_answer)
    monkeypatch.setattr(source_module, "read_answer", fetch)
    async with whole_flow(list(LOG), 2, chunk_bytes=100_000) as whole:
        await until(lambda: values(whole.target) == [b"a", b"b"])


async def test_a_topic_that_cannot_be_taken_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with whole_flow(list(LOG), 2, chunk_bytes=100_000) as whole:
        await until(lambda: len(values(whole.target)) == 2)
        discovery = whole.discovery
        taken = []

        def take(topic: Any, _: object) -> None:
            if topic.name == "t":
                raise ZeroDivisionError("planted")
            taken.append(topic.name)

        monkeypatch.setattr(discovery, "_take", take)
        whole.dc1.create_topic("u", 0)
        await discovery.discover()
        assert whole.partition.state is PartitionState.FAILED
        assert discovery.fault.text == "topic t: ZeroDivisionError: planted"
        assert "u" in taken


async def test_a_task_that_an_error_ends_begins_anew_and_says_so(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    runs: list[float] = []
    fault = FaultNote("flow: tasks")

    async def task() -> None:
        runs.append(trio.current_time())
        if len(runs) == 1:
            raise ExceptionGroup("nursery", [ZeroDivisionError("planted")])

    await keep_at_work(task, fault)
    assert len(runs) == 2
    assert fault.text is not None
    assert "ZeroDivisionError: planted" in fault.text
