"""Produce requests in a row, mutated, for what reads runs of them; all luck is the caller's."""

import random
from functools import cache
from itertools import islice
from types import ModuleType
from typing import Final

from tests.fuzz.batches import sound_batch
from wire.headers import RequestHeader, encode_request
from wire.hot.produce_run import PlainBatch, PlainRequest, ProduceRun, read_run
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

KINDS: Final = (ProduceRun, PlainRequest, PlainBatch)
LARGEST: Final = 4_000
OF_ONE: Final = 20
"""So many are made of one row of requests."""


def plain_request(topic: str, batches: int, *, acks: int = -1) -> ProduceRequest:
    """Return a request with batches for partitions from 0 on."""
    data = [
        PartitionProduceData(index=index, records=_plain_batches()[index % 10])
        for index in range(batches)
    ]
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=(TopicProduceData(name=topic, partition_data=tuple(data)),),
    )


@cache
def _plain_batches() -> list[bytes]:
    luck = random.Random(1)
    return list(islice(filter(is_plain, (sound_batch(luck) for _ in range(100))), 10))


def is_plain(batch: bytes) -> bool:
    """Say whether a sound batch says nothing unusual, by its header's bytes."""
    has_producer, sequence = batch[43] < 0x80, int.from_bytes(batch[53:57], signed=True)
    return batch[22] < 8 and not batch[21] and (not has_producer or sequence >= 0)


def frame_of(
    request: ProduceRequest, correlation_id: int, client_id: str | None, version: int
) -> bytes:
    """Return a whole frame."""
    header = RequestHeader(ProduceRequest.API_KEY, version, correlation_id, client_id)
    return b"".join(map(bytes, encode_request(header, request)))


def plain_frame() -> bytes:
    """Return one that is plain, of the client `test`."""
    return frame_of(plain_request("t", 1), 1, "test", 9)


def throw_runs(kernel: ModuleType, count: int, seed: int) -> int:
    """Have the kernel read so many rows of requests as Python does; return how many were runs.

    Raises AssertionError naming the first that differs.
    """
    luck = random.Random(seed)
    runs = 0
    for number in range(count):
        if number % OF_ONE == 0:
            whole = any_row(luck)
        row = whole if number % OF_ONE == 0 else mutated(luck, whole)
        start = luck.choice((0, 0, 0, luck.randrange(len(row) + 1)))
        end = luck.choice((len(row), len(row), luck.randint(start, len(row))))
        most = luck.choice((0, 1, 2, 100))
        view = memoryview(bytearray(row))
        found = kernel.read_run(KINDS, view, start, end, LARGEST, most)
        where = f"seed {seed}, row {number}"
        assert found == read_run(view, start, end, LARGEST, most), where
        assert found is None or type(found) is ProduceRun, where
        assert view == row, f"{where}: it was written to"
        runs += found is not None
    return runs


def any_row(luck: random.Random) -> bytes:
    """Return requests of which most have all in common."""
    client_id = luck.choice((None, "", "test", "ü" * 20))
    topic = luck.choice(("", "t", "orders", "é" * 100))
    acks, version = luck.choice((-1, 0, 1)), luck.choice((9, 9, 11, 12, 8, 13))
    row = b""
    for number in range(luck.randint(1, 5)):
        data = tuple(
            PartitionProduceData(index=luck.choice((0, 1, -1)), records=sound_batch(luck))
            for _ in range(luck.choice((1, 1, 2, 3)))
        )
        topics = (TopicProduceData(name=topic, partition_data=data),)
        request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)
        row += frame_of(request, number - 1, client_id, min(version, 11))
        if luck.random() < 0.1:
            client_id = "another"
    return row


def mutated(luck: random.Random, row: bytes) -> bytes:
    """Return the row with some bytes that are others, more, or fewer; mostly where lengths are."""
    changed = bytearray(row)
    for _ in range(luck.choice((1, 1, 2))):
        at = luck.choice((luck.randrange(60), luck.randrange(len(changed)))) % len(changed)
        what = luck.random()
        if what < 0.7:
            changed[at] = luck.choice(
                (0, 1, 2, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << luck.randrange(8))
            )
        elif what < 0.85:
            del changed[at : at + luck.randint(1, 3)]
        else:
            changed[at:at] = luck.randbytes(luck.randint(1, 3))
        if not changed:
            return row
    return bytes(changed)
