"""Maven: the machine's own, else one fetched and kept beside Kafka's jars.

MVNW_REPOURL, which Maven's own wrapper reads too, names the repository to fetch it from; where it
is not set, what is missing is to be installed.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import urllib.request
from pathlib import Path
from typing import Final

from runtime.process.java import JavaMissing, java_command
from tests.interop.peers.faults import PeerUnavailable
from tests.interop.peers.resources import require_disk

VERSION: Final = "3.9.16"
SHA512: Final = (
    "831a8591fe20c8243b1dbe7d71e3244f31d1665b0804b2e825e38cbbe5ce0cafb8338851f90780735568773e0a6cd07b"
    "bec107cda0b896b008b861075358b6f6"
)
REPOSITORY: Final = "MVNW_REPOURL"
ARCHIVE: Final = f"org/apache/maven/apache-maven/{VERSION}/apache-maven-{VERSION}-bin.tar.gz"
FETCH_TIMEOUT_S: Final = 60
MOST_BYTES: Final = 64 * 1024 * 1024
NEEDED_DISK_MB: Final = 50
INSTALL_IT: Final = f"install it (apt-get install maven), or set {REPOSITORY} to a repository"


def maven_command(folder: Path) -> Path:
    """Return the `mvn` to run: the PATH's, or the one in `folder`, fetched if it is not there.

    Raises PeerUnavailable.
    """
    on_path = shutil.which("mvn")
    if on_path is not None:
        return Path(on_path)
    unpacked = folder / f"apache-maven-{VERSION}"
    if not unpacked.exists():
        _unpack(_fetch(), folder, unpacked.name)
    return unpacked / "bin" / "mvn"


def run_maven(
    folder: Path, arguments: list[str], *, timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run Maven on the Java that everything else here runs on.

    Raises PeerUnavailable without Java or Maven, and subprocess.TimeoutExpired.
    """
    try:
        home = java_command().parent.parent
    except JavaMissing as error:
        raise PeerUnavailable(str(error)) from error
    return subprocess.run(
        [maven_command(folder), *arguments],
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def _fetch() -> bytes:
    """Return the archive once its checksum is right."""
    repository = os.environ.get(REPOSITORY)
    if not repository:
        raise PeerUnavailable(f"Maven, which fetches Apache Kafka, is missing: {INSTALL_IT}")
    source = f"{repository.rstrip('/')}/{ARCHIVE}"
    try:
        with urllib.request.urlopen(source, timeout=FETCH_TIMEOUT_S) as answer:  # noqa: S310
            archive: bytes = answer.read(MOST_BYTES)
    except (OSError, ValueError) as error:
        raise PeerUnavailable(
            f"Maven, which fetches Apache Kafka, is missing and cannot be fetched ({error}): "
            f"{INSTALL_IT}"
        ) from error
    if hashlib.sha512(archive).hexdigest() != SHA512:
        raise PeerUnavailable(f"{source} has another checksum than Maven {VERSION}: {INSTALL_IT}")
    return archive


def _unpack(archive: bytes, folder: Path, name: str) -> None:
    """Unpack all of it or nothing."""
    require_disk(folder, NEEDED_DISK_MB)
    partial = folder / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    packed = partial / "maven.tar.gz"
    packed.write_bytes(archive)
    with tarfile.open(packed) as tar:
        tar.extractall(partial, filter="data")
    (partial / name).rename(folder / name)
    shutil.rmtree(partial)
