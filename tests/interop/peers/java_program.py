"""Command lines of Java peers: small heaps, quick to start, jars from the cache."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.process.java import JavaMissing, java_command
from tests.interop.peers.artifacts import class_path, mirror_maker_class_path
from tests.interop.peers.faults import PeerUnavailable
from tests.interop.peers.logging_backend import logging_options

QUICK_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""For tests. A benchmark gives the optimising compiler its way: `jvm_options=FULL_SPEED`."""

FULL_SPEED: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""What Kafka's start scripts give brokers and MirrorMaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaProgram:
    """A main class of one Kafka version."""

    version: str
    main_class: str
    heap_mb: int
    jvm_options: tuple[str, ...] = QUICK_START
    is_mirror_maker: bool = False

    def command(self, folder: Path, *arguments: str, is_quiet: bool = False) -> list[str]:
        """Return the command; its log settings are written into `folder`.

        Raises PeerUnavailable when Java or the jars cannot be had.
        """
        try:
            java = java_command()
        except JavaMissing as error:
            raise PeerUnavailable(str(error)) from error
        jars = mirror_maker_class_path if self.is_mirror_maker else class_path
        return [
            str(java),
            f"-Xmx{self.heap_mb}m",
            f"-Djava.io.tmpdir={folder}",  # a killed one leaves what it has unpacked
            *self.jvm_options,
            *logging_options(self.version, folder, is_quiet=is_quiet),
            "-cp",
            jars(self.version),
            self.main_class,
            *arguments,
        ]
