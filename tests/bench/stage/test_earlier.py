"""Another commit's code, checked out to run beside this one's."""

import subprocess
from pathlib import Path

import pytest

from tests.bench.stage.earlier import UnknownRevision, check_out


def repository(folder: Path) -> Path:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
        subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)

    git("init", "--quiet")
    for text in ("first", "second"):
        (folder / "file").write_text(text)
        git("add", "file")
        git("commit", "--quiet", "--message", text)
    return folder


def test_a_commit_is_checked_out_once_and_changes_nothing_here(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = repository(tmp_path / "here")
    checkout = check_out("HEAD~1", tmp_path / "there", here)
    assert (checkout / "file").read_text() == "first"
    assert (here / "file").read_text() == "second"
    (checkout / "file").write_text("used")
    assert (check_out("HEAD~1", tmp_path / "there", here) / "file").read_text() == "used"


def test_an_unknown_commit_is_named(tmp_path: Path) -> None:
    here = repository(tmp_path)
    with pytest.raises(UnknownRevision, match="no commit '--nonsense'"):
        check_out("--nonsense", tmp_path / "there", here)
