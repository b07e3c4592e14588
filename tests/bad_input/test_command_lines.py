"""What a hurried person types: options in any order, words for numbers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import broker.cli
import failover.cli
from tests.commands import logging_is_its_own


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Programs that run in this process set up logging, on streams that end with the test."""
    with logging_is_its_own():
        yield


@pytest.mark.parametrize(
    "arguments",
    ["dc2 --source-lost dc.yaml", "--source-lost dc2 dc.yaml", "dc2 dc.yaml --source-lost"],
)
def test_an_option_may_stand_anywhere(arguments: str) -> None:
    options = failover.cli.PROGRAM.parse(["promote", *arguments.split()])
    assert (options.site, options.file, options.source_lost) == ("dc2", Path("dc.yaml"), True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--brokers x", "argument --brokers: 'x' is not a whole number"),
        ("--brokers 0", "argument --brokers: 0 is not between 1 and 100"),
        ("--port x", "argument --port: 'x' is not a whole number"),
        ("--port 70000", "argument --port: there is no port 70000"),
        ("--zookeeper z:0/dc1", "argument --zookeeper: 'z:0': there is no port 0"),
    ],
)
def test_a_wrong_number_is_named(
    capsys: pytest.CaptureFixture[str], arguments: str, complaint: str
) -> None:
    assert broker.cli.main(["up", *arguments.split()]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--port", "--metrics-port"])
def test_a_row_of_ports_that_goes_beyond_the_last_is_named(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert broker.cli.main(["up", option, "65534", "--brokers", "3"]) == 2
    assert capsys.readouterr().err == f"broker: {option} 65534: there is no port 65536\n"


def test_a_port_for_a_zookeeper_that_runs_by_itself_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--zookeeper", "z:2181/dc1", "--zookeeper-port", "2182"]
    assert broker.cli.main(["up", *arguments]) == 2
    said = "broker: --zookeeper-port: the servers of --zookeeper have ports of their own\n"
    assert capsys.readouterr().err == said
