"""Apache Kafka's jars: resolved by Maven once per version, kept under `build/peers`.

Which registry Maven asks is the machine's own setting; nothing here names one.
"""

import fcntl
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.interop.peers.faults import PeerUnavailable
from tests.interop.peers.maven import run_maven
from tests.interop.peers.resources import require_disk

CACHE: Final = Path(__file__).parents[3] / "build" / "peers"
POM: Final = Path(__file__).with_name("pom.xml")
CONNECTOR_POM: Final = Path(__file__).with_name("connector.xml")
CONNECTOR_VERSION: Final = "4.2.0"
"""The newest that Maven has; Spark of the next version takes it."""
RESOLVE_TIMEOUT_S: Final = 600
NEEDED_DISK_MB: Final = 500
RESOLVE: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")


def class_path(version: str, *, cache: Path = CACHE) -> str:
    """Return Java's class path for that version of Kafka and its tools.

    Raises PeerUnavailable when it is not in the cache and Maven cannot get it.
    """
    arguments = [f"-Dkafka.version={version}", f"-Pkafka-{version.partition('.')[0]}"]
    return _jars(POM, f"Apache Kafka {version}", arguments, cache / f"kafka-{version}.classpath")


def mirror_maker_class_path(version: str, *, cache: Path = CACHE) -> str:
    """Return Java's class path for MirrorMaker 2 of that version; raises PeerUnavailable."""
    profiles = f"-Pkafka-{version.partition('.')[0]},mirror-maker"
    listed = cache / f"mirror-maker-{version}.classpath"
    return _jars(POM, f"MirrorMaker {version}", [f"-Dkafka.version={version}", profiles], listed)


def connector_jars(version: str = CONNECTOR_VERSION, *, cache: Path = CACHE) -> str:
    """Return Java's class path of Spark's own Kafka connector, without what pip's pyspark brings.

    Raises PeerUnavailable when it is not in the cache and Maven cannot get it.
    """
    listed = cache / f"connector-{version}.classpath"
    arguments = [f"-Dspark.version={version}"]
    whole = _jars(CONNECTOR_POM, f"Spark's connector {version}", arguments, listed)
    own = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    return ":".join(jar for jar in whole.split(":") if Path(jar).name.startswith(own))


def _jars(pom: Path, what: str, arguments: list[str], listed: Path) -> str:
    with _only_one_resolves(listed.parent):
        if not _is_complete(listed):
            _resolve(pom, what, arguments, listed)
        return listed.read_text().strip()


def _is_complete(listed: Path) -> bool:
    return listed.exists() and all(
        Path(jar).exists() for jar in listed.read_text().strip().split(":")
    )


@contextmanager
def _only_one_resolves(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve(pom: Path, what: str, given: list[str], listed: Path) -> None:
    cache = listed.parent
    require_disk(cache, NEEDED_DISK_MB)
    partial = listed.with_suffix(".partial")
    arguments = ["--batch-mode", "--quiet", "--file", str(pom), RESOLVE, *given]
    arguments += [f"-Dmaven.repo.local={cache / 'maven'}", "-DincludeScope=runtime"]
    arguments += [f"-Dmdep.outputFile={partial}"]
    try:
        ended = run_maven(cache, arguments, timeout_s=RESOLVE_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailable(
            f"Maven did not resolve {what} within {RESOLVE_TIMEOUT_S} s"
        ) from error
    if ended.returncode != 0:
        raise PeerUnavailable(f"Maven cannot resolve {what}: {maven_reason(ended)}")
    partial.rename(listed)


def maven_reason(ended: subprocess.CompletedProcess[str]) -> str:
    """Return why Maven failed in a line; of a registry's failure, what happened to the transfer."""
    lines = [_COLOUR.sub("", line).strip() for line in (ended.stdout + ended.stderr).splitlines()]
    errors = [line.removeprefix("[ERROR] ") for line in lines if line.startswith("[ERROR] ")]
    if errors and "Could not transfer" in errors[0]:
        what_happened = errors[0].partition(" -> [Help")[0].rpartition(": ")[2]
        return f"the registry that it asks cannot be reached or refuses: {what_happened}"
    return (errors or [line for line in lines if line] or [f"status {ended.returncode}"])[0][:300]
