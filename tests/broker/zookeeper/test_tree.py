"""Nodes hold the JSON that Apache Kafka 3.9 writes, and Kafka's own nodes are read."""

import json
from uuid import UUID

import pytest

from broker.listeners import Listener, SecurityProtocol
from broker.zookeeper import tree
from broker.zookeeper.tree import (
    BrokerRegistration,
    LeaderAndIsr,
    MalformedNode,
    ProducerIdBlock,
    TopicAssignment,
)

HERE = Listener(name="PLAINTEXT", host="h", port=9092)
THERE = Listener(name="CLIENTS", host="::1", port=9093, protocol=SecurityProtocol.SASL_SSL)
TOPIC_ID = UUID("5a6f6f4b-6565-7065-7221-212121212121")


def test_a_broker_registers_as_version_5() -> None:
    data = tree.encode_broker([HERE], "r1", 1_700)
    assert json.loads(data) == {
        "version": 5,
        "host": "h",
        "port": 9092,
        "endpoints": ["PLAINTEXT://h:9092"],
        "jmx_port": -1,
        "timestamp": "1700",
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "features": {},
        "rack": "r1",
    }
    assert tree.decode_broker(4, data, 77) == BrokerRegistration(
        broker_id=4, host="h", port=9092, rack="r1", epoch=77, endpoints=(HERE,)
    )


def test_a_broker_is_registered_with_all_its_listeners() -> None:
    data = tree.encode_broker([THERE, HERE], None, 1_700)
    value = json.loads(data)
    assert value["endpoints"] == ["CLIENTS://[::1]:9093", "PLAINTEXT://h:9092"]
    assert value["listener_security_protocol_map"] == {
        "CLIENTS": "SASL_SSL",
        "PLAINTEXT": "PLAINTEXT",
    }
    assert (value["host"], value["port"]) == ("h", 9092)
    found = tree.decode_broker(4, data, 77, "CLIENTS")
    assert (found.host, found.port, found.endpoints) == ("::1", 9093, (THERE, HERE))


def test_host_and_port_are_for_clients_that_speak_plaintext_only() -> None:
    data = tree.encode_broker([THERE], None, 1_700)
    assert (json.loads(data)["host"], json.loads(data)["port"]) == (None, -1)
    assert tree.decode_broker(4, data, 77).port == 9093


def test_a_registration_of_before_listeners_is_read() -> None:
    data = b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1"}'
    assert tree.decode_broker(4, data, 77).listeners == (HERE,)


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("alice", "alice"), ("a b~*/ü", "a%20b%7E%2A%2F%C3%BC"), ("CN=x,O=y", "CN%3Dx%2CO%3Dy")],
)
def test_a_users_name_is_encoded_as_kafkas_sanitizer_does_it(name: str, encoded: str) -> None:
    assert tree.user_config_path(name) == f"/config/users/{encoded}"
    assert tree.decode_user(encoded) == name


def test_a_topic_is_written_as_version_3() -> None:
    assignment = TopicAssignment(topic_id=TOPIC_ID, replicas={0: (1, 2), 1: (2, 0)})
    data = tree.encode_topic(assignment)
    assert json.loads(data) == {
        "version": 3,
        "topic_id": "Wm9vS2VlcGVyISEhISEhIQ",
        "partitions": {"0": [1, 2], "1": [2, 0]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert tree.decode_topic("t", data) == assignment


def test_a_topic_that_kafka_wrote_is_read() -> None:
    data = (
        b'{"removing_replicas":{},"partitions":{"10":[0],"2":[1]},'
        b'"topic_id":"Wm9vS2VlcGVyISEhISEhIQ","adding_replicas":{},"version":3}'
    )
    assert tree.decode_topic("t", data).replicas == {2: (1,), 10: (0,)}


def test_a_move_is_written_with_who_comes_and_who_goes() -> None:
    assignment = TopicAssignment(
        topic_id=TOPIC_ID,
        replicas={0: (3, 1, 2), 1: (2, 0)},
        adding={0: (3,)},
        removing={0: (2,)},
    )
    data = tree.encode_topic(assignment)
    assert json.loads(data)["adding_replicas"] == {"0": [3]}
    assert json.loads(data)["removing_replicas"] == {"0": [2]}
    assert tree.decode_topic("t", data) == assignment
    assert assignment.moving() == {0}
    assert (assignment.origin(0), assignment.target(0)) == ((1, 2), (3, 1))


def test_a_state_after_an_unclean_election_says_so() -> None:
    state = LeaderAndIsr(
        leader=1, leader_epoch=4, isr=(1,), controller_epoch=9, version=5, recovery=1
    )
    data = tree.encode_state(state)
    assert json.loads(data)["leader_recovery_state"] == 1
    assert tree.decode_state("/x", data, 5) == state


def test_a_partition_state_is_written_as_version_1() -> None:
    state = LeaderAndIsr(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=9, version=5)
    data = tree.encode_state(state)
    assert json.loads(data) == {
        "version": 1,
        "leader": 1,
        "leader_epoch": 4,
        "controller_epoch": 9,
        "isr": [1, 2],
    }
    assert tree.decode_state("/x", data, 5) == state


def test_the_small_nodes_are_kafkas_too() -> None:
    assert json.loads(tree.encode_controller(2, 1_700)) == {
        "version": 2,
        "brokerid": 2,
        "timestamp": "1700",
        "kraftControllerEpoch": -1,
    }
    assert json.loads(tree.encode_config({"a": "1"})) == {"version": 1, "config": {"a": "1"}}
    assert json.loads(tree.encode_config_change("topics/t")) == {
        "version": 2,
        "entity_path": "topics/t",
    }
    failure = tree.encode_log_dir_failure(3)
    assert json.loads(failure) == {"version": 1, "broker": 3, "event": 1}
    assert tree.decode_log_dir_failure("/x", failure) == 3
    assert json.loads(tree.encode_cluster_id("abc")) == {"version": "1", "id": "abc"}
    block = ProducerIdBlock(broker_id=1, first=1000, last=1999)
    assert json.loads(tree.encode_producer_ids(block)) == {
        "version": 1,
        "broker": 1,
        "block_start": "1000",
        "block_end": "1999",
    }
    assert tree.decode_producer_ids(tree.encode_producer_ids(block)) == block


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"version":3}'])
def test_what_is_not_kafkas_is_named_by_its_path(data: bytes) -> None:
    with pytest.raises(MalformedNode, match=r"^/brokers/topics/t: "):
        tree.decode_topic("t", data)


def test_paths_are_kafkas() -> None:
    assert tree.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert tree.broker_path(1) == "/brokers/ids/1"
    assert tree.DEFAULT_BROKER_CONFIG == "/config/brokers/<default>"
    assert tree.delete_topic_path("t") == "/admin/delete_topics/t"


@pytest.mark.parametrize("entity", ["topics/..", "users/.", "users//clients/c", "topics/a\0", ""])
def test_a_notification_of_a_path_that_cannot_be_is_malformed(entity: str) -> None:
    """ZooKeeper's client throws at such a path, which would end the broker."""
    data = tree.encode_config_change(entity)
    with pytest.raises(tree.MalformedNode, match="/config/changes/config_change_1"):
        tree.decode_config_change("/config/changes/config_change_1", data)


@pytest.mark.parametrize("name", [".", "..", "...", "a.b", "a/b", "é ~", "<default>"])
def test_each_user_has_a_node_that_zookeeper_can_hold(name: str) -> None:
    encoded = tree.encode_user(name)
    assert tree.is_node_name(encoded)
    assert tree.decode_user(encoded) == name
