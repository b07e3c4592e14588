"""What peers may send: answered, or their connection ends with one line; nobody else notices."""

import logging
import random
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from broker.apis.table import APIS
from tests.broker.rig import Client, batch, fetch, outcome, produce, serving, warnings
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.list_offsets import ListOffsetsRequest
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from wire.primitives import MalformedMessage, pack_unsigned_varint
from wire.schema import Request, decode


def header(api_key: int, version: int) -> bytes:
    return struct.pack(">hhih", api_key, version, 7, -1)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack(">i", 200_000_000), "a frame of 200000000 bytes; the limit is 104857600"),
        (struct.pack(">i", -5), "a frame of -5 bytes; the limit is 104857600"),
        (framed(header(999, 0)), "API 999 is not served"),
        (
            framed(header(MetadataRequest.API_KEY, 99) + b"\0"),
            "Metadata version 99 is not served, only 0 to 13",
        ),
        (
            framed(
                header(MetadataRequest.API_KEY, 1) + struct.pack(">i", 100_002) + bytes(200_004)
            ),
            "MetadataRequest: more elements than the limit of 100000",
        ),
        (
            framed(
                header(MetadataRequest.API_KEY, 12) + pack_unsigned_varint(2_000) + bytes(4_000)
            ),
            "header: 2000 tagged fields; the limit is 1000 at byte 10",
        ),
        (b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725856 bytes; the limit is 104857600"),
    ],
)
async def test_what_is_no_request_ends_its_connection_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes, said: str
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as good, rig.connect() as bad:
        await bad.stream.send_all(sent)
        await bad.wait_closed()
        assert isinstance(await good.ask(MetadataRequest(topics=None)), MetadataResponse)
    assert warnings(caplog.records) == [f"connection closed: {said}"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        header(MetadataRequest.API_KEY, 1) + struct.pack(">i", 2**31 - 1),
        header(MetadataRequest.API_KEY, 1) + struct.pack(">ih", 1, 500) + b"short",
        header(ListOffsetsRequest.API_KEY, 1) + b"\xff" * 40,
    ],
)
async def test_a_garbled_request_ends_its_connection_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as good, rig.connect() as bad:
        await bad.stream.send_all(framed(body))
        await bad.wait_closed()
        assert isinstance(await good.ask(MetadataRequest(topics=None)), MetadataResponse)
    assert len(warnings(caplog.records)) == 1


async def test_an_unknown_version_of_api_versions_is_answered_so_that_anyone_can_read_it(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.stream.send_all(framed(header(ApiVersionsRequest.API_KEY, 99) + b"\0"))
        frame = await client.receive_frame()
        answer = decode(ApiVersionsResponse, frame[4:], 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert {api.api_key for api in answer.api_keys} == set(APIS)
        client.asked.clear()
        assert (await client.ask(ApiVersionsRequest(), 3)).error_code == ErrorCode.NONE


async def test_a_request_may_trickle_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        for byte in client.frame(produce(batch(b"slow"))):
            await client.stream.send_all(bytes([byte]))
        assert outcome(await client.receive()) == (ErrorCode.NONE, 0)


async def test_requests_that_come_together_are_answered_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        together = [client.frame(produce(batch(b"%d" % number))) for number in range(200)]
        await client.stream.send_all(b"".join(together))
        for number in range(200):
            assert outcome(await client.receive()) == (ErrorCode.NONE, number)


async def test_a_large_request_is_taken_whole(tmp_path: Path) -> None:
    async with serving(tmp_path, message_max_bytes=30_000_000) as rig, rig.connect() as client:
        value = random.Random(1).randbytes(20_000_000)
        assert outcome(await client.ask(produce(batch(value)))) == (ErrorCode.NONE, 0)
        partition = rig.node.partitions.led("t", 0)
        assert partition is not None
        assert value in partition.read(0, 100)


async def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, connections_max_idle_ms=100) as rig, rig.connect() as client:
        await client.ask(MetadataRequest(topics=None))
        await client.wait_closed()


async def test_a_peer_that_takes_no_answers_is_dropped(tmp_path: Path) -> None:
    """It asks for 40 MB and reads none of it: the broker keeps a file position, no memory."""
    settings = {"connections_max_idle_ms": 200, "message_max_bytes": 30_000_000}
    async with serving(tmp_path, **settings) as rig, rig.connect() as writer:
        for _ in range(2):
            await writer.ask(produce(batch(bytes(20_000_000))))
        async with rig.connect() as lazy:
            await lazy.send(fetch(0, max_bytes=60_000_000, partition_max_bytes=60_000_000))
            with trio.fail_after(60):
                while rig.node.metrics.connections > 0:  # noqa: ASYNC110 - a plain number
                    await trio.sleep(0.02)


async def test_connections_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections=1) as rig, rig.connect() as first:
        await first.ask(MetadataRequest(topics=None))
        async with rig.connect() as second:
            await second.wait_closed()
        assert (await first.ask(MetadataRequest(topics=None))).controller_id == 0


async def test_nothing_is_said_about_acks_0_and_the_next_answer_comes(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.send(produce(batch(b"a"), acks=0))
        client.asked.clear()
        assert outcome(await client.ask(produce(batch(b"b"), acks=1))) == (ErrorCode.NONE, 1)


async def test_acks_0_that_fails_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.send(produce(batch(b"a"), partition=2, acks=0))
        await client.wait_closed()
    assert warnings(caplog.records) == [
        "connection closed: acks=0 for 't' 2: NOT_LEADER_OR_FOLLOWER"
    ]


async def test_mutated_frames_disturb_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hundreds of requests with bytes changed: an answer or a closed connection, every time."""
    caplog.set_level(logging.ERROR)
    luck = random.Random(20)
    async with serving(tmp_path) as rig, rig.connect() as bystander:
        seeds: list[Request[Any]] = [
            produce(batch(b"x" * 50)),
            MetadataRequest(topics=(MetadataRequestTopic(name="t"),)),
            ApiVersionsRequest(),
        ]
        for _ in range(400):
            async with rig.connect() as client:
                request = luck.choice(seeds)
                version = luck.choice(APIS[request.API_KEY].versions)
                frame = bytearray(client.frame(request, version))
                for _ in range(luck.randint(1, 4)):
                    frame[luck.randrange(4, len(frame))] = luck.randrange(256)
                await client.stream.send_all(frame)
                await client.stream.send_eof()
                await _drain(client)
        assert (await bystander.ask(MetadataRequest(topics=None))).controller_id == 0
    mistakes = [record for record in caplog.records if record.exc_info is not None]
    assert not mistakes


async def _drain(client: Client) -> None:
    with trio.fail_after(60):
        try:
            while await client.stream.receive_some():
                continue
        except (trio.BrokenResourceError, MalformedMessage):
            return


async def test_a_flood_of_garbage_writes_few_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as good:
        for _ in range(300):
            async with rig.connect() as bad:
                await bad.stream.send_all(framed(b""))
                await bad.wait_closed()
        assert isinstance(await good.ask(MetadataRequest(topics=None)), MetadataResponse)
    assert 50 <= len(warnings(caplog.records)) < 150


async def test_a_flood_of_what_we_answer_wrongly_writes_few_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as good:
        # Whatever else is asked of it is a mistake of ours.
        broken: Any = SimpleNamespace(running=rig.node.dynamic.running)
        rig.node.dynamic, kept = broken, rig.node.dynamic
        resource = DescribeConfigsResource(resource_type=2, resource_name="t")
        for _ in range(300):
            async with rig.connect() as bad:
                await bad.send(DescribeConfigsRequest(resources=(resource,)))
                await bad.wait_closed()
        rig.node.dynamic = kept
        assert isinstance(await good.ask(MetadataRequest(topics=None)), MetadataResponse)
    mistakes = [record for record in caplog.records if record.exc_info is not None]
    assert 50 <= len(mistakes) < 150


async def test_an_answer_that_quotes_a_name_of_full_length_still_fits(tmp_path: Path) -> None:
    resource = DescribeConfigsResource(resource_type=2, resource_name="y" * 32_767)
    async with serving(tmp_path) as rig, rig.connect() as client:
        answer = await client.ask(DescribeConfigsRequest(resources=(resource,)), 1)
    [result] = answer.results
    assert result.error_code != ErrorCode.NONE
    assert len(result.error_message) == 1_000
    assert result.resource_name == "y" * 32_767
