"""`mirror config`: a file is valid or each mistake has a line; what is printed can be used."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from mirror.cli import main
from tests.commands import logging_is_its_own

GOOD = """\
clusters: {dc1: {bootstrap: "a:1"}, dc2: {bootstrap: "b:1"}}
flows: [{source: dc1, target: dc2}]
coordination: {zookeeper: "c:1"}
"""


def config(*words: str | Path) -> int:
    """Run `mirror config` with these words and return the exit status."""
    with logging_is_its_own():
        return main(["config", *map(str, words)])


def test_a_valid_file_is_said_to_be_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(GOOD)
    assert config("validate", file) == 0
    assert capsys.readouterr().out == f"{file}: valid; clusters dc1, dc2; flows dc1->dc2\n"


def test_each_mistake_has_a_line_and_the_status_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(GOOD.replace("a:1", "a").replace("target: dc2", "target: dc3"))
    assert config("validate", file) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"mirror: {file}:1: clusters.dc1.bootstrap: 'a' is not host:port",
        f"mirror: {file}:2: flows[0].target: unknown cluster 'dc3'; there are dc1, dc2",
    ]


def test_the_schema_that_is_printed_takes_the_example_that_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert config("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    assert config("example") == 0
    Draft202012Validator(schema).validate(yaml.safe_load(capsys.readouterr().out))
