"""How many connections there may be, by how many files the system allows."""

import resource

import pytest

from runtime.process.open_files import most_open


@pytest.mark.parametrize(
    ("files", "asked", "each", "most"),
    [(1024, 100, 1, 100), (1024, 5_000, 1, 768), (1024, 5_000, 2, 384), (-1, 5_000, 2, 5_000)],
)
def test_a_quarter_of_the_files_is_left(
    monkeypatch: pytest.MonkeyPatch, files: int, asked: int, each: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert most_open(asked, files_each=each) == most
