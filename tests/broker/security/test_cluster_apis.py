"""Cluster APIs are for brokers: a stranger takes nothing away and deposes nobody."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from broker.security.settings import JaasLogin
from tests.broker.replication.orders import DEPOSES, FORGETS, STOPS
from tests.broker.rig import Client, Rig, batch, fetch, leadership, outcome, produce, serving
from tests.broker.security.listening import RIGHT, WRONG, connected, secured, security
from tests.doubles.certificates import Certificates
from wire.errors import ErrorCode
from wire.messages.alter_partition import AlterPartitionRequest
from wire.messages.controlled_shutdown import ControlledShutdownRequest
from wire.messages.fetch import ReplicaState
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.security import Mechanism, Sasl, Security

NEWEST = 2**31 - 1
ORDERS: list[Any] = [replace(order, controller_epoch=NEWEST) for order in (STOPS, DEPOSES, FORGETS)]
OTHERS: list[Any] = [
    AlterPartitionRequest(broker_id=0, broker_epoch=-1, topics=()),
    ControlledShutdownRequest(broker_id=0),
]


def state(rig: Rig) -> tuple[bool, UUID, Mapping[int, object]]:
    """Return what an order could have changed."""
    log = rig.node.logs.get("t", 0)
    assert log is not None
    led = rig.node.partitions.led("t", 0)
    return led is not None, UUID(bytes=log.topic_id), dict(rig.node.metadata.brokers)


async def obeys_the_real_one(client: Client) -> bool:
    answer = await client.ask(replace(DEPOSES, controller_epoch=1))
    return bool(answer.error_code == ErrorCode.NONE)


@pytest.mark.parametrize("order", [*ORDERS, *OTHERS], ids=lambda order: type(order).__name__)
async def test_a_stranger_is_refused_and_changes_nothing(tmp_path: Path, order: Any) -> None:
    async with serving(tmp_path) as rig, rig.connect() as stranger:
        before = state(rig)
        answer = await stranger.ask(order, client_id="broker-1")
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert state(rig) == before
        async with rig.connect_broker() as controller:
            assert await obeys_the_real_one(controller)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
async def test_an_epoch_that_zookeeper_has_given_to_nobody_deposes_nobody(
    tmp_path: Path, order: Any
) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as broker:
        before = state(rig)
        assert (await broker.ask(order)).error_code == ErrorCode.INVALID_REQUEST
        assert state(rig) == before
        assert await obeys_the_real_one(broker)


@pytest.mark.parametrize("version", [4, 6, 12, 17])
async def test_no_stranger_fetches_in_a_followers_name(tmp_path: Path, version: int) -> None:
    """It would say that the follower has everything: acks=all would promise what one log holds."""
    named: dict[str, Any] = {"replica_id": 1}
    if version >= 15:
        named = {"replica_state": ReplicaState(replica_id=1)}
    async with serving(tmp_path) as rig, rig.connect() as producer, rig.connect() as stranger:
        rig.node.partitions.take(replace(leadership(0, epoch=6), isr=(0, 1)))
        await producer.send(produce(batch(b"a")))
        with trio.move_on_after(0.3):
            for _ in range(3):
                answer = await stranger.ask(fetch(1, **named), version)
                (data,) = answer.responses[0].partitions
                assert data.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            await producer.receive()
            pytest.fail("acknowledged on a stranger's word")
        led = rig.node.partitions.led("t", 0)
        assert led is not None
        assert led.high_watermark == 0


async def test_no_stranger_goes_on_with_a_followers_session(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as rig,
        rig.connect_broker() as follower,
        rig.connect() as stranger,
    ):
        asked = fetch(0, replica_state=ReplicaState(replica_id=1), session_epoch=0)
        begun = await follower.ask(asked)
        assert begun.session_id
        going_on = replace(asked, topics=(), session_id=begun.session_id, session_epoch=1)
        answer = await stranger.ask(replace(going_on, replica_state=ReplicaState()))
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_wrong_secret_is_refused_and_clients_of_that_listener_prove_nothing(
    tmp_path: Path,
) -> None:
    settings = {"connection_failed_authentication_delay_ms": 0}
    async with serving(tmp_path, **settings) as rig, rig.connect() as client:
        assert outcome(await client.ask(produce(batch(b"a"), acks=1))) == (ErrorCode.NONE, 0)
        async with rig.connect() as stranger:
            guess = replace(rig.node.cluster_brokers.proof, password=WRONG)
            answer = await stranger.prove(guess)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "only brokers of the cluster" in str(answer.error_message)
            await stranger.wait_closed()
        handshake = await client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        assert handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert outcome(await client.ask(produce(batch(b"b"), acks=1))) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(
    ("user", "error"),
    [
        ("broker", ErrorCode.NONE),
        ("operator", ErrorCode.NONE),
        ("alice", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
async def test_where_brokers_log_in_they_are_known_by_name(
    tmp_path: Path, certificates: Certificates, user: str, error: ErrorCode
) -> None:
    """Their own user, and super users; whoever else is let in is a client, on any listener."""
    everybody = {"broker": RIGHT, "operator": RIGHT, "alice": RIGHT}
    settings: dict[str, Any] = {
        "inter_broker_listener_name": "SASL_PLAINTEXT",
        "sasl_jaas_config": JaasLogin(username="broker", password=RIGHT, users=everybody),
        "super_users": ("User:operator",),
    }
    order = replace(FORGETS, controller_epoch=1)
    async with secured(tmp_path, certificates, **settings) as rig:
        sasl = Sasl(mechanism=Mechanism.PLAIN, username=user, password=RIGHT)
        async with connected(rig, "SASL_PLAINTEXT", Security(sasl=sasl)) as connection:
            assert (await connection.request(order)).error_code == error
        for listener in ("PLAINTEXT", "SSL"):
            allowed = security(certificates, listener)
            async with connected(rig, listener, allowed) as connection:
                answer = await connection.request(order)
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_secret_is_taken_only_where_brokers_come(
    tmp_path: Path, certificates: Certificates
) -> None:
    settings = {"inter_broker_listener_name": "SSL"}
    order = replace(FORGETS, controller_epoch=1)
    async with secured(tmp_path, certificates, **settings) as rig:
        proof = rig.node.cluster_brokers.proof
        async with rig.connect("PLAINTEXT") as stranger:
            answer = await stranger.ask(SaslHandshakeRequest(mechanism=proof.mechanism.value))
            assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        tls = security(certificates, "SSL").tls
        async with connected(rig, "SSL", Security(tls=tls, sasl=proof)) as connection:
            assert (await connection.request(order)).error_code == ErrorCode.NONE
