"""What a worker makes of the node in which commands carried out are acknowledged."""

from pathlib import Path
from typing import Any

import pytest

from mirror.flow.runner import FlowRunner
from mirror.state.measurements import FlowMeasurements
from runtime.configuration.config import load
from runtime.coordination.witness import WorkerInfo
from runtime.coordination.zookeeper import ZNode
from tests.mirror.building import FILE


class Witness:
    def __init__(self, node: ZNode | None) -> None:
        self._node = node

    async def get(self, _: str) -> ZNode | None:
        return self._node


@pytest.mark.parametrize("data", [None, b"", b"{", b'{"epoch": 1}'])
async def test_what_makes_no_sense_counts_as_nothing_and_ends_no_daemon(
    tmp_path: Path, data: bytes | None
) -> None:
    (tmp_path / "dc.yaml").write_text(FILE)
    configuration = load(tmp_path / "dc.yaml")
    [flow] = configuration.flows
    worker = WorkerInfo(host="h", pid=1, metrics_url="", started_ms=0)
    runner = FlowRunner(configuration, flow, worker, FlowMeasurements(flow.name))
    witness: Any = Witness(
        None
        if data is None
        else ZNode(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0)
    )
    assert await runner._read_acknowledged(witness) is None
