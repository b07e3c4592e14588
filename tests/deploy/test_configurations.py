"""The files to start from are taken as they are, once their secrets are there."""

import re
from pathlib import Path
from typing import Final

import pytest

from runtime.configuration.config import Configuration, load
from tests.doubles.key_stores import Family

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "configuration"
FILES: Final = {file.stem: file for file in FOLDER.glob("*.yaml")}
MOUNTED: Final = "/etc/kafka-dr/"


def read(name: str, folder: Path) -> Configuration:
    """Return what a file says, with its certificates and secrets in a folder of the test."""
    text = FILES[name].read_text()
    for one in set(re.findall(rf"{MOUNTED}([\w.]+)", text)):
        file = folder / one
        file.write_text(Family().root.pem() if one.endswith(".pem") else "secret\n")
        file.chmod(0o600)
    file = folder / "dc.yaml"
    file.write_text(text.replace(MOUNTED, f"{folder}/"))
    return load(file)


@pytest.mark.parametrize("name", FILES)
def test_a_file_to_start_from_is_one_that_programs_take(name: str, tmp_path: Path) -> None:
    configuration = read(name, tmp_path)
    assert configuration.failover.initial_active in configuration.clusters
    assert {flow.source for flow in configuration.flows} <= configuration.clusters.keys()


def test_there_is_a_file_for_each_kind_of_pair(tmp_path: Path) -> None:
    assert FILES.keys() == {"bundled", "apache-kafka", "msk", "active-active", "three-sites"}
    assert all(flow.is_active_active for flow in read("active-active", tmp_path).flows)
    assert len(read("three-sites", tmp_path).clusters) == 3
    secured = read("apache-kafka", tmp_path)
    assert all(one.security.tls and one.security.sasl for one in secured.clusters.values())
