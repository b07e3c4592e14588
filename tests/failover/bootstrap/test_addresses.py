"""No address of a broker reaches a client, in any version of any answer that is carried."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failover.bootstrap.addresses import CHANGED, BrokerNames, BrokerPorts, shown
from failover.bootstrap.spoken import CARRIED
from tests.failover.bootstrap.layouts import field_names
from tests.wire.message_strategies import messages
from wire.headers import decode_response, encode_response
from wire.messages.describe_cluster import DescribeClusterResponse
from wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.table import APIS
from wire.schema import ApiMessage
from wire.schema.plan import top_level

PORTS = BrokerPorts("kafka.example", range(9100, 9200))
WITH_ADDRESSES = [(key, v) for key in CHANGED for v in CARRIED[key] if key != 18]
BROKERS_OWN = "kafka-1.internal"


def frame_of(answer: ApiMessage, version: int) -> bytes:
    return b"".join(encode_response(7, answer, version))[4:]


def seen(answer: Any, version: int) -> Any:
    frame = shown(frame_of(answer, version), answer.API_KEY, version, PORTS).frame
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return decode_response(type(answer), frame[4:], version)


def test_every_answer_that_holds_addresses_is_among_the_changed() -> None:
    holding = {
        key
        for key, versions in CARRIED.items()
        for version in versions
        if {"host", "port"} <= field_names(top_level(APIS[key].RESPONSE, version))
    }
    assert holding == CHANGED.keys() - {18}


def ids_in_range(answer: Any, version: int) -> Any:
    """Return an answer with ids that have a port and hosts that are recognized."""
    changes: dict[str, Any] = {}
    for name in ("brokers", "coordinators"):
        if hasattr(answer, name):
            key = "broker_id" if isinstance(answer, DescribeClusterResponse) else "node_id"
            changes[name] = tuple(
                replace(each, **{key: number, "host": BROKERS_OWN})
                for number, each in enumerate(getattr(answer, name))
            )
    if isinstance(answer, FindCoordinatorResponse) and version <= 3:
        changes |= {"node_id": 3, "host": BROKERS_OWN}
    return replace(answer, **changes)


@pytest.mark.parametrize(("key", "version"), WITH_ADDRESSES)
@settings(max_examples=15)
@given(data=st.data())
def test_the_rest_of_an_answer_stays_and_no_host_of_a_broker_is_in_it(
    key: int, version: int, data: st.DataObject
) -> None:
    cls = CHANGED[key]
    before = frame_of(ids_in_range(data.draw(messages(cls, version)), version), version)
    answer: Any = decode_response(cls, before, version)
    after = seen(answer, version)
    for name in ("brokers", "coordinators"):
        for number, each in enumerate(getattr(after, name, ())):
            assert (each.host, each.port) == PORTS.of(number)
    if getattr(answer, "host", ""):
        assert (after.host, after.port) == PORTS.of(3)
    hidden = {"brokers", "coordinators", "host", "port", "topics"}
    for name in {slot.name for slot in top_level(cls, version).present} - hidden:
        assert getattr(after, name) == getattr(answer, name)


def test_leader_epochs_are_not_shown_and_topics_are() -> None:
    partition = MetadataResponsePartition(
        error_code=0,
        partition_index=4,
        leader_id=1,
        leader_epoch=12,
        replica_nodes=(1, 2),
        isr_nodes=(2,),
    )
    topic = MetadataResponseTopic(error_code=0, name="t", partitions=(partition,))
    broker = MetadataResponseBroker(node_id=1, host=BROKERS_OWN, port=9092, rack="r")
    answer = seen(MetadataResponse(brokers=(broker,), topics=(topic,)), 9)
    assert answer.brokers == (replace(broker, host="kafka.example", port=9101),)
    assert answer.topics == (replace(topic, partitions=(replace(partition, leader_epoch=-1),)),)


def test_the_brokers_that_an_answer_named_are_learned() -> None:
    broker = MetadataResponseBroker(node_id=5, host="b", port=1)
    answer = MetadataResponse(brokers=(broker,), topics=())
    assert shown(frame_of(answer, 1), 3, 1, PORTS).brokers == {5: ("b", 1)}


def test_where_there_is_no_coordinator_none_is_shown() -> None:
    none = Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)
    answer = FindCoordinatorResponse(coordinators=(none,))
    assert seen(answer, 4).coordinators == (none,)


@pytest.mark.parametrize("node_id", [-1, 100])
def test_a_broker_without_a_port_is_left_out_and_named_with_the_key_to_change(node_id: int) -> None:
    brokers = tuple(MetadataResponseBroker(node_id=node, host="b", port=1) for node in (2, node_id))
    found = shown(frame_of(MetadataResponse(brokers=brokers, topics=()), 9), 3, 9, PORTS)
    told = decode_response(MetadataResponse, found.frame[4:], 9)
    assert [each.node_id for each in told.brokers] == [2]
    [why] = found.left_out
    assert f"broker {node_id} has no port" in why
    assert "forward.ports has 100" in why


@pytest.mark.parametrize("version", [3, 4])
def test_a_coordinator_without_a_port_is_none_for_the_moment(version: int) -> None:
    where: dict[str, Any] = {"node_id": 100, "host": BROKERS_OWN, "port": 1}
    one = Coordinator(key="g", error_code=0, **where)
    single, several = FindCoordinatorResponse(**where), FindCoordinatorResponse(coordinators=(one,))
    told = seen(several if version == 4 else single, version)
    found = told.coordinators[0] if version == 4 else told
    assert (found.error_code, found.node_id, found.host) == (15, -1, "")


@given(node=st.integers(0, 999_999_999))
def test_a_name_leads_back_to_its_broker(node: int) -> None:
    names = BrokerNames("b{broker}.Kafka.example", 443)
    host, port = names.of(node)
    assert port == 443
    assert names.node_of(host) == names.node_of(host.upper()) == node


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "boot.kafka.example",
        "b.kafka.example",
        "b01.kafka.example",
        "b-1.kafka.example",
        "b1.kafka.example.org",
        "xb1.kafka.example",
        "b1xkafka.example",
        "b\u0661.kafka.example",
        f"b{'9' * 300}.kafka.example",
    ],
)
def test_other_names_are_of_no_broker_in_particular(name: str | None) -> None:
    assert BrokerNames("b{broker}.kafka.example", 443).node_of(name) is None
