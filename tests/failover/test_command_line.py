"""The command line of `failover`, as it is typed in a hurry."""

from itertools import permutations
from pathlib import Path

import pytest

from failover.cli import parse


@pytest.mark.parametrize(
    "arguments",
    [
        list(order)
        for order in permutations(["dc2", "dc.yaml", "--source-lost"])
        if order.index("dc2") < order.index("dc.yaml")
    ],
)
def test_the_option_may_stand_anywhere(arguments: list[str]) -> None:
    options = parse(["promote", *arguments])
    assert (options.site, options.file, options.source_lost) == ("dc2", Path("dc.yaml"), True)


@pytest.mark.parametrize("arguments", [["--json", "dc.yaml"], ["dc.yaml", "--json"]])
def test_the_file_of_status_may_stand_on_either_side(arguments: list[str]) -> None:
    options = parse(["status", *arguments])
    assert (options.file, options.json) == (Path("dc.yaml"), True)


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["promote", "dc2"])
    assert ended.value.code == 2
    assert "FILE" in capsys.readouterr().err
