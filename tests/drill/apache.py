"""Apache Kafka behind a relay: a source with transactions; one broker, its own controller."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from runtime.process.child import ENDS_WITH_ITS_PARENT
from runtime.process.ports import free_port
from tests.drill.cluster import Cluster, DrillFailed, Process, cluster_of
from tests.drill.links import Links
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.peers.broker_settings import Seat, broker_settings
from tests.interop.peers.java_program import JavaProgram

HEAP_MB: Final = 512
FORMAT_S: Final = 60
CLUSTER_ID: Final = "ZHJpbGwtY2x1c3Rlci0xIQ"
SETTINGS: Final = {
    "log.cleaner.backoff.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}


@asynccontextmanager
async def run_apache(folder: Path, links: Links, site: str) -> AsyncIterator[Cluster]:
    """Run it until the block ends. Raises PeerUnavailable where it cannot be had."""
    home = folder / f"{site}broker-0"
    home.mkdir(parents=True)
    broker = _program("kafka.Kafka").command(home, str(home / "kafka.properties"))
    async with cluster_of(folder, links, site) as (cluster, stand_before):
        port = free_port()
        name = f"{site}broker-0"
        await stand_before(name, port)
        await trio.to_thread.run_sync(_prepare, home, port, cluster.ports[name])
        cluster.processes[name] = Process(
            name=name,
            command=["/bin/sh", "-c", ENDS_WITH_ITS_PARENT, broker[0], *broker],
            log=folder / f"{name}.log",
        )
        cluster.start(name)
        yield cluster


def _prepare(home: Path, port: int, advertised: int) -> None:
    """Write the settings and format the log. Raises DrillFailed."""
    seat = Seat(number=0, port=port, controller_port=free_port())
    settings = home / "kafka.properties"
    settings.write_text(
        broker_settings(
            seat,
            mode=KAFKA_4_KRAFT.mode,
            quorum=[seat],
            zookeeper="",
            log_folder=home / "logs",
            overrides={
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{advertised}",
                **SETTINGS,
            },
        )
    )
    command = _program("kafka.tools.StorageTool").command(
        home, "format", "--cluster-id", CLUSTER_ID, "--config", str(settings), is_quiet=True
    )
    run = partial(subprocess.run, command, capture_output=True, text=True, check=False)
    ended = run(timeout=FORMAT_S)
    if ended.returncode != 0:
        raise DrillFailed(f"{home} was not formatted: {(ended.stderr + ended.stdout).strip()}")


def _program(main_class: str) -> JavaProgram:
    return JavaProgram(version=KAFKA_4_KRAFT.version, main_class=main_class, heap_mb=HEAP_MB)
