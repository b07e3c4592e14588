"""A client that hangs is ended, and says where it was: a drill can hardly be had a second time."""

from pathlib import Path

import pytest

from runtime.process.ports import free_port
from tests.drill.cluster import DrillFailed
from tests.drill.workload import Clients


async def test_of_a_client_that_does_not_end_the_stack_is_told(tmp_path: Path) -> None:
    nobody = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    clients = Clients(folder=tmp_path, client=nobody, rate=1)
    clients.start("read", "final")  # it waits for a broker that is not there
    try:
        with pytest.raises(DrillFailed, match=r"(?s)does not end.*Aborted.*clients\.py.* in read"):
            await clients.finish("final", 2.0)
    finally:
        clients.kill()
