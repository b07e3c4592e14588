"""Apache Kafka's command line tools, run until they end."""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.interop.peers.java_program import JavaProgram

TOOL_HEAP_MB: Final = 256
TOOL_TIMEOUT_S: Final = 240
GROUPS_PATIENCE: Final = ("--timeout", "60000")
"""Milliseconds. The tool's own 5 s are over on a busy machine while Java loads its classes."""
GAVE_UP: Final = "Error: Executing consumer group command failed"
"""What the tool of groups prints, and ends with status 0, when it has done nothing."""

TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
VERIFIABLE_PRODUCER: Final = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER: Final = "org.apache.kafka.tools.VerifiableConsumer"
PRODUCER_PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE: Final = "org.apache.kafka.tools.ConsumerPerformance"
TRANSACTIONAL_COPIER: Final = "org.apache.kafka.tools.TransactionalMessageCopier"
TRANSACTIONS: Final = "org.apache.kafka.tools.TransactionsCommand"
GET_OFFSETS: Final = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS: Final = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS: Final = "org.apache.kafka.tools.LogDirsCommand"
CLUSTER: Final = "org.apache.kafka.tools.ClusterTool"


class ToolFailed(RuntimeError):
    """A tool ended with a status other than 0, or gave up; the message has both its outputs."""


def dump_log_segments(version: str) -> str:
    """Return the class that prints segments: it moved with Kafka 4."""
    return _moved(version, "kafka.tools.DumpLogSegments")


def broker_api_versions(version: str) -> str:
    """Return the class that asks brokers for their APIs: it moved with Kafka 4."""
    return _moved(version, "kafka.admin.BrokerApiVersionsCommand")


def acls(version: str) -> str:
    """Return the class of kafka-acls.sh: it moved with Kafka 4."""
    return _moved(version, "kafka.admin.AclCommand")


def configs(version: str) -> str:
    """Return the class of kafka-configs.sh: it moved with Kafka 4.4, the only 4 that is run."""
    return _moved(version, "kafka.admin.ConfigCommand")


def _moved(version: str, name_in_3: str) -> str:
    name = name_in_3.rpartition(".")[2]
    return name_in_3 if version.startswith("3.") else f"org.apache.kafka.tools.{name}"


def run_tool(
    version: str,
    main_class: str,
    *arguments: str,
    given: str | None = None,
    timeout_s: float = TOOL_TIMEOUT_S,
    is_mirror_maker: bool = False,
) -> str:
    """Run a tool of that Kafka version, `given` on its standard input; return what it printed.

    One of MirrorMaker's has its jars as well.

    Raises ToolFailed, subprocess.TimeoutExpired, or PeerUnavailable without Java or jars.
    """
    program = JavaProgram(
        version=version,
        main_class=main_class,
        heap_mb=TOOL_HEAP_MB,
        is_mirror_maker=is_mirror_maker,
    )
    arguments += GROUPS_PATIENCE if main_class == GROUPS else ()
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            program.command(Path(folder), *arguments, is_quiet=True),
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    if ended.returncode != 0 or GAVE_UP in ended.stdout + ended.stderr:
        raise ToolFailed(
            f"{main_class.rpartition('.')[2]} {' '.join(arguments)} ended with "
            f"{ended.returncode}:\n{ended.stdout}{ended.stderr}"
        )
    return ended.stdout
