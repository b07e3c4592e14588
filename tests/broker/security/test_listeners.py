"""A broker's listeners over real sockets: TLS, SASL, both, and who does not come in."""

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from broker import connection as served
from broker.listeners import SecurityProtocol
from broker.metadata_cache import BrokerEndpoint
from tests.broker.rig import batch, fetch, produce, warnings
from tests.broker.security.listening import (
    METADATA,
    RIGHT,
    WRONG,
    complaints,
    connected,
    refused,
    secured,
    security,
)
from tests.doubles.certificates import Certificates
from wire.messages.metadata import MetadataRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.errors import BrokerUnreachable
from wire.net.security import Mechanism, Sasl, Security, Tls
from wire.schema import Request


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("PLAINTEXT", Mechanism.PLAIN),
        ("SSL", Mechanism.PLAIN),
        ("SASL_PLAINTEXT", Mechanism.PLAIN),
        ("SASL_PLAINTEXT", Mechanism.SCRAM_SHA_256),
        ("SASL_SSL", Mechanism.PLAIN),
        ("SASL_SSL", Mechanism.SCRAM_SHA_256),
    ],
)
async def test_records_come_back_as_they_were_sent_over(
    tmp_path: Path, certificates: Certificates, protocol: str, mechanism: Mechanism
) -> None:
    """Small batches, and one of which the file's part is larger than any piece."""
    sent = [batch(b"small"), batch(os.urandom(900_000)), batch(b"last")]
    async with secured(tmp_path, certificates) as rig:
        allowed = security(certificates, protocol, mechanism)
        async with connected(rig, protocol, allowed) as connection:
            for one in sent:
                answer = await connection.request(produce(one))
                assert answer.responses[0].partition_responses[0].error_code == 0
            got = b""
            for offset in (0, 2):
                asked = fetch(offset, partition_max_bytes=4_000_000, max_bytes=4_000_000)
                found = await connection.request(asked)
                records: Any = found.responses[0].partitions[0].records
                got += bytes(records)
        metrics = rig.node.metrics
        assert metrics.authentications == (1 if protocol.startswith("SASL") else 0)
    for one in sent:
        assert one[61:] in got
    assert len(got) == sum(map(len, sent)) + len(sent[-1])


async def test_each_request_knows_who_asks_and_by_which_listener(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    original = served.Connection._call

    def noted(self: Any, header: Any) -> Any:
        call = original(self, header)
        asked.append((call.listener, call.principal))
        return call

    monkeypatch.setattr(served.Connection, "_call", noted)
    async with secured(tmp_path, certificates) as rig:
        for protocol in SecurityProtocol:
            allowed = security(certificates, protocol.name)
            async with connected(rig, protocol.name, allowed) as connection:
                await connection.request(METADATA)
    # The last request of each connection: ApiVersions come before.
    assert dict(asked) == {
        "PLAINTEXT": "User:ANONYMOUS",
        "SSL": "User:CN=client",
        "SASL_PLAINTEXT": "User:alice",
        "SASL_SSL": "User:alice",
    }


@pytest.mark.parametrize("mechanism", [Mechanism.PLAIN, Mechanism.SCRAM_SHA_256])
async def test_a_wrong_password_is_refused_in_words_and_logged_without_it(
    tmp_path: Path,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    mechanism: Mechanism,
) -> None:
    wrong = Security(sasl=Sasl(mechanism=mechanism, username="alice", password=WRONG))
    async with secured(tmp_path, certificates) as rig:
        said = await refused(rig, "SASL_PLAINTEXT", wrong)
        assert "Authentication failed" in said
        assert rig.node.metrics.failed_authentications == 1
    (line,) = warnings(caplog.records)
    assert line.startswith("not let in on SASL_PLAINTEXT: Authentication failed")
    assert WRONG not in caplog.text


@pytest.mark.parametrize("mechanism", [Mechanism.PLAIN, Mechanism.SCRAM_SHA_256])
async def test_nobody_learns_from_a_refusal_which_users_there_are(
    tmp_path: Path, certificates: Certificates, mechanism: Mechanism
) -> None:
    """Neither from its words nor from the step at which it comes, nor from a proof's price."""
    async with secured(tmp_path, certificates) as rig:
        said = {
            await refused(
                rig,
                "SASL_PLAINTEXT",
                Security(sasl=Sasl(mechanism=mechanism, username=name, password=WRONG)),
            )
            for name in ("alice", "nobody")
        }
        theirs = {words.partition(": ")[2].partition(" (user")[0] for words in said}
        assert len(theirs) == 1
        known = rig.node.scram_users.credential(Mechanism.SCRAM_SHA_256, "alice")
        unknown = rig.node.scram_users.credential(Mechanism.SCRAM_SHA_256, "nobody")
        assert known.iterations == unknown.iterations


async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(
    tmp_path: Path, certificates: Certificates
) -> None:
    sasl = Sasl(mechanism=Mechanism.SCRAM_SHA_512, username="alice", password=RIGHT)
    async with secured(tmp_path, certificates) as rig:
        said = await refused(rig, "SASL_PLAINTEXT", Security(sasl=sasl))
    assert "only PLAIN, SCRAM-SHA-256" in said


async def test_who_is_not_trusted_hears_why(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    made = certificates
    strange = Tls(ca=made.strange_ca, certificate=made.client, key=made.key(made.client))
    async with secured(tmp_path, made) as rig:
        said = await refused(rig, "SSL", Security(tls=Tls(ca=made.ca)))
        assert "certificate required" in said
        said = await refused(rig, "SSL", Security(tls=strange))
        assert "not trusted" in said
        async with connected(rig, "SSL", security(made, "SSL")) as connection:
            await connection.request(METADATA)
        assert rig.node.metrics.failed_tls_handshakes == 2
    assert complaints(caplog.records) == [
        "TLS handshake failed on SSL: peer did not return a certificate",
        "TLS handshake failed on SSL: tlsv1 alert unknown ca",
    ]


async def test_plaintext_on_a_tls_port_is_one_line(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with secured(tmp_path, certificates) as rig:
        async with rig.connect("SSL") as client:
            await client.send(METADATA)
            await client.wait_closed()
        async with connected(rig, "SSL", security(certificates, "SSL")) as connection:
            await connection.request(METADATA)
    assert complaints(caplog.records) == [
        "TLS handshake failed on SSL: the client does not speak TLS"
    ]


async def test_tls_on_a_plaintext_port_is_one_line(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    tls = Tls(ca=certificates.ca)
    async with secured(tmp_path, certificates) as rig:
        with pytest.raises(BrokerUnreachable):
            async with connected(rig, "PLAINTEXT", Security(tls=tls)):
                raise AssertionError("it came in")
        async with rig.connect() as client:
            await client.ask(METADATA)
    assert warnings(caplog.records) == [
        "connection closed: the client speaks TLS, which is not spoken on this listener"
    ]


async def test_who_connects_and_leaves_is_not_worth_a_line(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with secured(tmp_path, certificates) as rig:
        async with rig.connect("SSL"):
            pass
        async with connected(rig, "SSL", security(certificates, "SSL")) as connection:
            await connection.request(METADATA)
    assert complaints(caplog.records) == []


async def test_a_stranger_may_not_send_much(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"sasl_server_max_receive_size": 1_000}
    async with secured(tmp_path, certificates, **settings) as rig:
        async with rig.connect("SASL_PLAINTEXT") as client:
            await client.send(produce(batch(b"x" * 2_000)))
            await client.wait_closed()
        allowed = security(certificates, "SASL_PLAINTEXT")
        async with connected(rig, "SASL_PLAINTEXT", allowed) as connection:
            await connection.request(produce(batch(b"x" * 2_000)))
    (line,) = warnings(caplog.records)
    assert line.endswith("the limit is 1000")


async def test_who_does_not_say_its_name_in_time_is_hung_up_on(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Machines may be late: what comes in time must not be turned away.
    monkeypatch.setattr("broker.security.entry.AUTHENTICATE_WITHIN_S", 1.0)
    async with secured(tmp_path, certificates) as rig:
        async with rig.connect("SASL_PLAINTEXT") as client:
            await client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
            await client.wait_closed()
        async with rig.connect("SASL_SSL") as client:
            await client.wait_closed()
        assert rig.node.metrics.failed_authentications == 1
        assert rig.node.metrics.failed_tls_handshakes == 1
        monkeypatch.setattr("broker.security.entry.AUTHENTICATE_WITHIN_S", 4.0)
        allowed = security(certificates, "SASL_SSL")
        async with connected(rig, "SASL_SSL", allowed) as connection:
            await trio.sleep(4.1)  # who is known may be silent
            await connection.request(METADATA)


async def test_a_connection_is_authenticated_again_without_a_break(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Behind the second before which nobody may, and long before the end: machines may be late.
    monkeypatch.setattr("wire.net.sasl.RENEWED_FROM", 0.3)
    settings = {"connections_max_reauth_ms": 4_000}
    async with secured(tmp_path, certificates, **settings) as rig:
        allowed = security(certificates, "SASL_SSL", Mechanism.SCRAM_SHA_256)
        async with connected(rig, "SASL_SSL", allowed) as connection:
            over = trio.current_time() + 4.1
            with trio.fail_after(60):
                while rig.node.metrics.authentications < 3 or trio.current_time() < over:
                    async with trio.open_nursery() as nursery:
                        for _ in range(4):
                            nursery.start_soon(connection.request, METADATA)
                    await trio.sleep(0.01)


async def test_sasl_where_nobody_asks_for_it_is_out_of_place(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with secured(tmp_path, certificates) as rig, rig.connect() as client:
        answer = await client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        assert answer.error_code == 34
        answer = await client.ask(SaslAuthenticateRequest(auth_bytes=b""))
        assert answer.error_code == 34


async def test_requests_behind_the_proof_are_answered_in_order(
    tmp_path: Path, certificates: Certificates
) -> None:
    """A client may send on without waiting for the answer to its proof."""
    async with secured(tmp_path, certificates) as rig, rig.connect("SASL_PLAINTEXT") as client:
        requests: list[Request[Any]] = [
            SaslHandshakeRequest(mechanism="PLAIN"),
            SaslAuthenticateRequest(auth_bytes=f"\0alice\0{RIGHT}".encode()),
            METADATA,
            produce(batch(b"x")),
            METADATA,
        ]
        await client.stream.send_all(b"".join(client.frame(one) for one in requests))
        answers = [await client.receive() for _ in requests]
        assert [answer.error_code for answer in answers[:2]] == [0, 0]
        assert answers[3].responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("listener", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
async def test_garbage_ends_its_connection_only(
    tmp_path: Path,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    listener: str,
) -> None:
    luck = random.Random(7)
    async with secured(tmp_path, certificates) as rig:
        for number in range(60):
            # Half of it begins as a TLS handshake does, some is cut off in the middle.
            start = b"\x16\x03\x01\x00\x20\x01" if number % 2 else b""
            async with rig.connect(listener) as client:
                with suppress(trio.BrokenResourceError):
                    await client.stream.send_all(start + luck.randbytes(luck.randrange(1, 90)))
                    await client.stream.send_eof()
                    async for _ in client.stream:  # an alert, perhaps
                        pass
        async with connected(rig, listener, security(certificates, listener)) as connection:
            await connection.request(METADATA)
    assert "our mistake" not in caplog.text


async def test_metadata_names_the_listener_that_was_asked(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with secured(tmp_path, certificates) as rig:
        both = {"PLAINTEXT": ("p", 1), "SASL_PLAINTEXT": ("s", 2)}
        rig.node.metadata.set_brokers(
            0,
            [
                BrokerEndpoint(broker_id=0, host="p", port=1, endpoints=both),
                BrokerEndpoint(broker_id=1, host="q", port=3, endpoints={"PLAINTEXT": ("q", 3)}),
            ],
        )
        asked = MetadataRequest(topics=None)
        allowed = security(certificates, "SASL_PLAINTEXT")
        async with connected(rig, "SASL_PLAINTEXT", allowed) as connection:
            answer = await connection.request(asked)
        async with rig.connect() as client:
            of_all = await client.ask(asked)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(0, "s", 2)]
    assert [(one.node_id, one.host) for one in of_all.brokers] == [(0, "p"), (1, "q")]
    errors = [part.error_code for part in answer.topics[0].partitions]
    assert errors == [0, 0, 72]  # LISTENER_NOT_FOUND: the leader is not to be reached that way
