"""A story's folder is empty at first, and a second story cannot take it away."""

from pathlib import Path

import pytest

from demo.folder import empty_folder
from demo.stack import StackFailed


def test_what_an_earlier_story_left_is_gone(tmp_path: Path) -> None:
    (tmp_path / "run" / "dc1").mkdir(parents=True)
    with empty_folder(tmp_path / "run"):
        assert list((tmp_path / "run").iterdir()) == []


def test_a_second_story_is_refused_and_removes_nothing(tmp_path: Path) -> None:
    with empty_folder(tmp_path / "run"):
        (tmp_path / "run" / "data").write_text("precious")
        with pytest.raises(StackFailed, match="run: in use by another run"):
            empty_folder(tmp_path / "run").__enter__()
        assert (tmp_path / "run" / "data").read_text() == "precious"


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StackFailed, match=r"file/run\.lock: File exists"),
        empty_folder(tmp_path / "file" / "run"),
    ):
        pass
