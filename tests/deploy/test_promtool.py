"""promtool comes out of the system's package; where that cannot be had, nothing fails."""

from pathlib import Path

import pytest

from tests.deploy.promtool import find_promtool, unpack_promtool


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_system_without_apt_is_told_and_nothing_fails(programs: Path, tmp_path: Path) -> None:
    assert list(programs.iterdir()) == []
    assert unpack_promtool(tmp_path / "build") == "this system has no apt-get and dpkg-deb"
    assert find_promtool(tmp_path / "build") is None


def test_where_no_package_can_be_reached_the_last_words_of_apt_are_told(
    programs: Path, tmp_path: Path
) -> None:
    program(programs / "apt-get", 'echo "E: first" >&2; echo "E: nobody there: $1" >&2; exit 100')
    program(programs / "dpkg-deb", "exit 0")
    assert unpack_promtool(tmp_path / "build") == "E: nobody there: download"


def test_a_package_is_downloaded_once_apt_has_its_lists_and_unpacked(
    programs: Path, tmp_path: Path
) -> None:
    """apt-get knows of no package before its first update."""
    lists = tmp_path / "lists"
    program(
        programs / "apt-get",
        f'if [ "$1" = update ]; then : > {lists}; exit 0; fi\n'
        f"[ -e {lists} ] && : > prometheus_2_amd64.deb",
    )
    unpack = '/bin/mkdir -p "$3/usr/bin" && echo "$2" > "$3/usr/bin/promtool"'
    program(programs / "dpkg-deb", unpack)
    assert unpack_promtool(tmp_path / "build") is None
    found = find_promtool(tmp_path / "build")
    assert found is not None
    assert Path(found).read_text().endswith("prometheus_2_amd64.deb\n")
