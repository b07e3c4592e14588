"""A running MirrorMaker 2 in dedicated mode, from one cluster to another.

with run_mirror_maker(tmp_path, version=NEWEST_3, source=dc1, target=dc2):
    ...
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.interop.peers.child import Child, start_child
from tests.interop.peers.faults import PeerFailed, PeerLost
from tests.interop.peers.java_program import QUICK_START, JavaProgram
from tests.interop.peers.resources import require_memory

START_TIMEOUT_S: Final = 240
STOP_TIMEOUT_S: Final = 60
HEAP_MB: Final = 512
RESIDENT_MB: Final = 900
MAIN_CLASS: Final = "org.apache.kafka.connect.mirror.MirrorMaker"
STARTED: Final = "Kafka MirrorMaker started"

SINGLE_COPY: Final = {
    "replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
}
"""What clusters of one broker need."""

SAME_NAMES: Final = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
}

TUNED: Final = {
    "tasks.max": "8",
    "{source}.consumer.max.poll.records": "10000",
    "{source}.consumer.max.partition.fetch.bytes": str(10 * 1024 * 1024),
    "{target}.producer.batch.size": str(512 * 1024),
    "{target}.producer.linger.ms": "20",
    "{target}.producer.enable.idempotence": "true",
    "{target}.producer.max.in.flight.requests.per.connection": "5",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
}
"""MirrorMaker 2 as people run it who know it; `{source}` and `{target}` become the aliases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster as MirrorMaker is told of it."""

    alias: str
    bootstrap: str


@dataclass(slots=True, kw_only=True)
class MirrorMaker:
    """One dedicated MirrorMaker process with one flow; its positions lie in the clusters."""

    version: str
    folder: Path
    source: Site
    target: Site
    settings: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = HEAP_MB
    jvm_options: tuple[str, ...] = QUICK_START
    _child: Child | None = None
    _has_run: bool = False

    @property
    def pid(self) -> int:
        """Return the process id; it must run."""
        return self._running.pid

    @property
    def log(self) -> str:
        """Return what it has said since it was started; nothing when it does not run."""
        return self._child.said() if self._child is not None else ""

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    @property
    def _running(self) -> Child:
        assert self._child is not None, "it was not started"
        return self._child

    def start(self) -> None:
        """Start and wait until it says so; its connectors come up a little later.

        Raises PeerUnavailable or PeerFailed; PeerLost when it has come up before.
        """
        require_memory(RESIDENT_MB)
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "mm2.properties"
        properties.write_text(self._properties())
        program = JavaProgram(
            version=self.version,
            main_class=MAIN_CLASS,
            heap_mb=self.heap_mb,
            jvm_options=self.jvm_options,
            is_mirror_maker=True,
        )
        self._child = child = start_child(
            f"MirrorMaker {self.version} {self.source.alias}->{self.target.alias}",
            program.command(self.folder, str(properties)),
            log=self.folder / "mm2.out",
        )
        try:
            child.wait_until(lambda: STARTED in child.said(), timeout_s=START_TIMEOUT_S)
        except PeerFailed as fault:
            self.kill()
            if self._has_run:
                raise PeerLost(str(fault)) from fault
            raise
        self._has_run = True

    def stop(self) -> None:
        """End it as SIGTERM does and wait until it is gone."""
        if self._child is not None:
            self._child.stop(patience_s=STOP_TIMEOUT_S)
            self._child = None

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def restart(self) -> None:
        """Start again; ends what still runs."""
        self.stop()
        self.start()

    def _properties(self) -> str:
        aliases = {"source": self.source.alias, "target": self.target.alias}
        settings = {
            "clusters": f"{self.source.alias},{self.target.alias}",
            f"{self.source.alias}.bootstrap.servers": self.source.bootstrap,
            f"{self.target.alias}.bootstrap.servers": self.target.bootstrap,
            f"{self.source.alias}->{self.target.alias}.enabled": "true",
            f"{self.target.alias}->{self.source.alias}.enabled": "false",
            **{key.format(**aliases): value for key, value in self.settings.items()},
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


@contextmanager
def run_mirror_maker(
    folder: Path,
    *,
    version: str,
    source: Site,
    target: Site,
    settings: Mapping[str, str] | None = None,
) -> Iterator[MirrorMaker]:
    """Run MirrorMaker 2 until the block ends; `settings` go on top of its defaults."""
    mirror_maker = MirrorMaker(
        version=version,
        folder=folder,
        source=source,
        target=target,
        settings=dict(settings or {}),
    )
    mirror_maker.start()
    try:
        yield mirror_maker
    except BaseException:
        mirror_maker.kill()
        raise
    mirror_maker.stop()
