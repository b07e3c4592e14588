"""What is typed for entries of rights, quotas, passwords and clusters, and what is refused."""

import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import broker.cli
from broker.commands.acls import creations_of, filter_of
from broker.commands.configs import named
from broker.commands.groups import rule_of
from broker.commands.key_values import key_values
from broker.commands.quotas import parts_of
from broker.commands.reaching import cluster_of
from broker.commands.resetting import ToTime
from broker.commands.users import MOST_PASSWORD_BYTES, read_password
from runtime.program.command import Options
from runtime.program.program import BadInput
from tests.dc_yaml import dc_yaml, flow
from wire.acls import AclFilter, Operation, PatternType, Permission, ResourceType


def typed(*words: str) -> Options:
    return broker.cli.PROGRAM.parse(words)


def refused(act: Callable[[Options], object], *words: str) -> str:
    """Return why a command line cannot be carried out."""
    with pytest.raises(BadInput) as wrong:
        act(typed(*words))
    return str(wrong.value)


ADD = ("acls", "add", "--principal", "User:a")


def test_each_operation_of_each_principal_from_each_host_is_an_entry() -> None:
    words = (*ADD, "--principal", "User:b", "--topic", "t", "--operation", "read")
    made = creations_of(typed(*words, "--operation", "Describe_Configs", "--host", "10.0.0.1"))
    assert {(one.principal, one.operation, one.host) for one in made} == {
        (principal, operation, "10.0.0.1")
        for principal in ("User:a", "User:b")
        for operation in (Operation.READ, Operation.DESCRIBE_CONFIGS)
    }
    assert {one.permission_type for one in made} == {Permission.ALLOW}


def test_a_prefix_and_a_denial_are_said_by_options() -> None:
    words = (*ADD, "--group", "app-", "--prefixed", "--operation", "all", "--deny")
    [made] = creations_of(typed(*words))
    assert (made.resource_type, made.resource_name) == (ResourceType.GROUP, "app-")
    assert (made.resource_pattern_type, made.permission_type) == (
        PatternType.PREFIXED,
        Permission.DENY,
    )
    assert made.host == "*"


def test_an_entry_needs_a_resource_a_principal_and_an_operation() -> None:
    assert "--topic" in refused(creations_of, *ADD, "--operation", "read")
    assert "--operation" in refused(creations_of, *ADD, "--topic", "t")
    words = ("acls", "add", "--topic", "t", "--operation", "read", "--principal", "alice")
    assert "User:alice" in refused(creations_of, *words)


def test_no_option_chooses_every_entry_and_a_name_chooses_exactly_that() -> None:
    assert filter_of(typed("acls", "list")) == AclFilter()
    words = ("acls", "list", "--topic", "t")
    exact = AclFilter(type=ResourceType.TOPIC, name="t", pattern=PatternType.LITERAL)
    assert filter_of(typed(*words)) == exact
    assert filter_of(typed(*words, "--matching")).pattern is PatternType.MATCH
    assert filter_of(typed("acls", "list", "--cluster")).name == "kafka-cluster"
    assert "one of them" in refused(filter_of, *words, "--host", "a", "--host", "b")
    assert "prefix" in refused(filter_of, "acls", "list", "--prefixed")


def test_a_quota_may_be_for_a_user_and_the_default_of_its_client_ids() -> None:
    words = ("quotas", "list", "--user", "alice", "--client-id-default")
    assert parts_of(typed(*words)) == [("user", "alice"), ("client-id", None)]
    assert parts_of(typed("quotas", "list")) == []


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "many"])
async def test_a_quota_is_a_number_above_zero(value: str) -> None:
    options = typed("quotas", "set", "--user", "alice", f"producer_byte_rate={value}")
    with pytest.raises(BadInput, match="producer_byte_rate"):
        await options.command.load()(options)  # type: ignore[misc]


async def test_a_quota_is_somebodys() -> None:
    options = typed("quotas", "set", "producer_byte_rate=1")
    with pytest.raises(BadInput, match="whose"):
        await options.command.load()(options)  # type: ignore[misc]


def test_a_value_may_have_the_sign_that_parts_it_from_its_key() -> None:
    assert key_values("--set", ["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    for texts in (["a"], ["=a"], ["a=1", "a=2"]):
        with pytest.raises(BadInput, match="--set"):
            key_values("--set", texts)


def test_a_broker_is_named_by_its_id_or_all_of_them_by_a_word() -> None:
    assert named(typed("configs", "describe", "broker", "7")) == ("broker", "7")
    assert named(typed("configs", "describe", "broker", "default")) == ("broker", "")
    assert named(typed("configs", "describe", "topic", "default")) == ("topic", "default")
    assert "id" in refused(named, "configs", "describe", "broker", "kafka-1")


def test_a_reset_has_one_rule() -> None:
    assert "where to" in refused(lambda o: rule_of(o, 0), "groups", "reset-offsets", "g")
    options = typed("groups", "reset-offsets", "g", "--by-duration", "1h")
    assert rule_of(options, 5_000_000) == ToTime(1_400_000)
    with pytest.raises(SystemExit):
        typed("groups", "reset-offsets", "g", "--to-latest", "--to-earliest")


@pytest.mark.parametrize("content", [b"secret\n", b"secret\r\n", b"secret"])
def test_the_end_of_a_line_is_not_part_of_a_password(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    options = typed("users", "add", "alice", "--password-file", str(file))
    assert read_password(options) == b"secret"


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a\nb", b"\xff\xfe", b"x" * (MOST_PASSWORD_BYTES + 1)]
)
def test_what_is_no_password_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    assert "password" in refused(
        read_password, "users", "add", "alice", "--password-file", str(file)
    )


def test_a_password_comes_from_a_terminal_or_by_an_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"secret\nmore\n")))
    assert "--password-file" in refused(read_password, "users", "add", "alice")
    options = typed("users", "add", "alice", "--password-file", "-")
    assert read_password(options) == b"secret"
    missing = str(tmp_path / "missing")
    assert missing in refused(read_password, "users", "add", "a", "--password-file", missing)


def test_without_an_option_the_local_cluster_is_meant() -> None:
    assert cluster_of(typed("topics", "list")).bootstrap == (("127.0.0.1", 9092),)
    options = typed("topics", "list", "--bootstrap", "a:1, b:2")
    assert cluster_of(options).bootstrap == (("a", 1), ("b", 2))
    assert "host:port" in refused(cluster_of, "topics", "list", "--bootstrap", "a")


def test_a_site_is_reached_by_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow(), dc1="a:1", dc2="b:2", witness="c:3"))
    words = ("topics", "list", "--config", str(file), "--site")
    assert cluster_of(typed(*words, "dc2")).bootstrap == (("b", 2),)
    assert "it has dc1, dc2" in refused(cluster_of, *words, "dc3")
    with pytest.raises(SystemExit):
        typed(*words, "dc2", "--bootstrap", "a:1")
