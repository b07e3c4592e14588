"""Two clusters, a witness, and mirrors between them; nothing here knows what fails.

The source is Apache Kafka; where that cannot be had, two bundled brokers, and no transactions are
drilled. Over TLS and SASL it is two bundled brokers, with transactions. The target's two brokers
rather lose records than wait (unclean elections).
"""

import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from demo.doors import Doors
from tests.dc_yaml import FREE_PORTS, dc_yaml, flow
from tests.drill.apache import run_apache
from tests.drill.cluster import Cluster, Process, create_topic, run_cluster, wait_ready
from tests.drill.links import Links
from tests.drill.workload import PARTITIONS, TOPIC
from tests.interop.peers import PeerUnavailable

BROKERS: Final = 2
TRANSACTIONAL: Final = "transacted"
COMPACTED: Final = "compacted"
MIRRORS: Final[Mapping[str, int]] = {"mirror-a": 1, "mirror-b": 1, "mirror-c": 2}
"""The programs that can run, each with its number of worker processes."""
CLEANED: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
}
QUICK: Final = {"zookeeper.session.timeout.ms": "4000", "log.cleaner.backoff.ms": "500"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that runs; `all` has the processes that can be hit."""

    source: Cluster
    target: Cluster
    all: Cluster
    topics: Sequence[str]


@asynccontextmanager
async def run_stage(folder: Path, *, is_secured: bool = False) -> AsyncIterator[Stage]:
    """Run both clusters, with the source's topics; mirrors are there to be started.

    `is_secured`: over TLS, with a login at every door, pages and witness included.
    """
    links = Links()
    doors = Doors(folder / "doors") if is_secured else None
    unclean = {**QUICK, "unclean.leader.election.enable": "true"}
    async with (
        _run_source(folder / "dc1", links, doors) as (source, topics),
        run_cluster(
            folder / "dc2", links, BROKERS, BROKERS, "dc2-", unclean, doors=doors
        ) as target,
        run_cluster(folder / "witness", links, 0, 1, "witness-", doors=doors) as witness,
    ):
        everything = Cluster(
            folder=folder,
            links=links,
            processes={**source.processes, **target.processes},
            ports={**source.ports, **target.ports},
        )
        tls = {} if doors is None else {"tls": doors.at_witness}
        pages = {} if doors is None else doors.at_pages
        configuration = folder / "dc.yaml"
        configuration.write_text(
            dc_yaml(
                flow(
                    topics=topics,
                    topic_settings={
                        "exclude": ["cleanup.policy", "unclean.leader.election.enable"]
                    },
                    replication_factor=BROKERS,
                    discovery_interval_ms=300,
                ),
                dc1=source.section,
                dc2=target.section,
                witness=f"127.0.0.1:{witness.ports[witness.zookeeper]}",
                path="/drill",
                coordination={"session_timeout_ms": 3_000, **tls},
                metrics={**FREE_PORTS, **pages},
            )
        )
        for name, workers in MIRRORS.items():
            everything.processes[name] = Process(
                name=name,
                command=[
                    *(sys.executable, "-m", "mirror.cli", "run", str(configuration)),
                    *([] if workers == 1 else ["--workers", str(workers)]),
                ],
                log=folder / f"{name}.log",
            )
        try:
            for topic in topics:
                more = CLEANED if topic == COMPACTED else {}
                await create_topic(
                    source,
                    topic,
                    partitions=PARTITIONS,
                    factor=len(source.brokers),
                    min_in_sync=1,
                    more=more,
                )
            yield Stage(source=source, target=target, all=everything, topics=topics)
        finally:
            with trio.CancelScope(shield=True):
                for name in MIRRORS:
                    await everything.stop(name, signal.SIGKILL)


@asynccontextmanager
async def _run_source(
    folder: Path, links: Links, doors: Doors | None
) -> AsyncIterator[tuple[Cluster, Sequence[str]]]:
    """Run what can be had as a source, and say which topics it can have."""
    async with AsyncExitStack() as stack:
        if doors is not None:
            guarded = run_cluster(folder, links, BROKERS, BROKERS, "dc1-", QUICK, doors=doors)
            yield await stack.enter_async_context(guarded), (TOPIC, TRANSACTIONAL, COMPACTED)
            return
        try:
            source = await stack.enter_async_context(run_apache(folder, links, "dc1-"))
        except PeerUnavailable:
            bundled = run_cluster(folder / "bundled", links, BROKERS, BROKERS, "dc1-", QUICK)
            yield await stack.enter_async_context(bundled), (TOPIC, COMPACTED)
        else:
            await wait_ready(source, 1)
            yield source, (TOPIC, TRANSACTIONAL, COMPACTED)
