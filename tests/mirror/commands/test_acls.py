"""`mirror acls`: the commands that grant what the programs need."""

import json
import shlex
from pathlib import Path

import pytest

from mirror.commands.acls import NoPrincipal, acls
from runtime.configuration.config import load
from runtime.rights.needed import By
from tests.dc_yaml import dc_yaml, flow

SASL = {
    "bootstrap": "dc1.example:9093",
    "security_protocol": "SASL_PLAINTEXT",
    "sasl": {"mechanism": "PLAIN", "username": "dr", "password": "x"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "dc.yaml"
    path.write_text(
        dc_yaml(
            flow("dc1", "dc2", ["orders", "pay[12]"]),
            flow("dc2", "dc1", ["orders"]),
            dc1=SASL,
            dc2={"bootstrap": "dc2.example:9093"},
            witness="w:2181",
            failover={"initial_active": "dc1"},
        )
    )
    return path


def told(file: Path, *, principal: str | None, as_json: bool = False) -> list[str]:
    return list(
        acls(
            load(file),
            None,
            program=By.MIRROR,
            principal=principal,
            with_orders=False,
            as_json=as_json,
        )
    )


def test_each_line_is_a_command_of_kafkas_tool_with_its_reason(file: Path) -> None:
    lines = told(file, principal="dr")
    assert lines[0] == "# mirror on dc1"
    [fetch] = [line for line in lines if "dc1.example" in line and "--topic orders" in line]
    words = shlex.split(fetch, comments=True)
    assert words[:6] == [
        *("kafka-acls.sh", "--bootstrap-server", "dc1.example:9093"),
        *("--add", "--allow-principal", "User:dr"),
    ]
    operations = {words[at + 1] for at, word in enumerate(words) if word == "--operation"}
    assert {"Read", "Write", "DescribeConfigs"} <= operations
    assert "  # to fetch records" in fetch


def test_a_pattern_that_no_entry_can_say_is_widened_and_that_is_said(file: Path) -> None:
    lines = told(file, principal="User:dr")
    at = lines.index("# 'pay[12]' is neither name nor prefix, so this is for all:")
    assert "--topic '*'" in lines[at + 1]


def test_a_login_without_a_name_asks_for_the_principal(file: Path) -> None:
    with pytest.raises(NoPrincipal, match=r"clusters\.dc2: .*--principal"):
        told(file, principal=None)


def test_the_json_has_kafkas_names(file: Path) -> None:
    entries = json.loads("\n".join(told(file, principal="dr", as_json=True)))
    [cluster] = [
        one for one in entries if one["cluster"] == "dc2" and one["resource_type"] == "CLUSTER"
    ]
    assert cluster["name"] == "kafka-cluster"
    assert cluster["principal"] == "User:dr"
    assert cluster["operations"] == ["ALTER", "DESCRIBE"]
