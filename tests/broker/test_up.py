"""`broker up` while it waits for its brokers, without any."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from broker.ports import PortWishes
from broker.up import SECRET, Child, ClusterFailed, UpOptions, _own_login, _wait_ready
from runtime.process.ports import free_port


def child(broker_id: int, output: Path, status: int | None) -> Child:
    """Return a broker where nobody listens; with a status it has ended."""
    process: Any = SimpleNamespace(poll=lambda: status)
    return Child(
        broker_id=broker_id,
        host="127.0.0.1",
        port=free_port(),
        also_port=None,
        metrics_port=None,
        output=output,
        process=process,
    )


async def test_a_broker_that_ends_is_told_of_at_once_while_another_waits_for_it(
    tmp_path: Path,
) -> None:
    output = tmp_path / "broker.log"
    output.write_text("starting\nno port 65536\n")
    children = [child(0, tmp_path / "none", None), child(1, output, 2)]
    told = "broker 1 ended with status 2: no port 65536"
    with trio.fail_after(20), pytest.RaisesGroup(pytest.RaisesExc(ClusterFailed, match=told)):
        await _wait_ready(children)


def test_a_log_that_was_taken_away_is_no_reason_to_end(tmp_path: Path) -> None:
    gone = tmp_path / "gone.log"
    assert child(0, gone, 1).last_words() == f"({gone}: No such file or directory)"


def test_the_password_of_zookeeper_is_made_once_and_refused_where_others_can_read_it(
    tmp_path: Path,
) -> None:
    options = UpOptions(
        name="dc1",
        data=tmp_path,
        ports=PortWishes(host="", brokers=1, broker_port=0, zookeeper_port=0, metrics_port=None),
        ready_file=None,
        overrides={},
    )
    login = _own_login(options)
    assert _own_login(options) == login
    assert login.username == "broker"
    (tmp_path / SECRET).chmod(0o644)
    with pytest.raises(ClusterFailed, match=f"--data {tmp_path}/{SECRET}: every user .* read it"):
        _own_login(options)
