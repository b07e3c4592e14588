"""What a compacted topic takes of a producer: what its cleaner can do right by."""

from pathlib import Path

import pytest

from broker.log.results import AppendResult, BatchRefused
from tests.broker.log.cleaning import COMPACTED
from tests.broker.log.logs import NOW_MS, batch, one_log
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.record_batch import HEADER_BYTES, parse_header
from wire.record_batch.header import pack_header


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_a_producers_record_without_a_key_is_refused(tmp_path: Path, codec: Compression) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        sent = batch([b"1", b"2"], keys=[b"a", None], compression=codec)
        refused = log.append(sent, leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(refused, BatchRefused)
        assert refused.error is ErrorCode.INVALID_RECORD
        keyed = batch([b"1", None], keys=[b"a", b"b"], compression=codec)
        assert isinstance(log.append(keyed, leader_epoch=0, now_ms=NOW_MS), AppendResult)


def test_a_record_that_claims_an_offset_of_others_is_refused(tmp_path: Path) -> None:
    """It would count as the last one of its key, and take away those that come behind it."""
    sent = batch([b"1"], keys=[b"a"])
    payload = bytearray(sent[HEADER_BYTES:])
    _, attributes, time_delta, offset_delta = payload[:4]
    assert (attributes, time_delta, offset_delta) == (0, 0, 0)
    payload[3] = 2 * 5
    lying = pack_header(parse_header(sent), bytes(payload)) + payload
    with one_log(tmp_path, COMPACTED) as log:
        refused = log.append(memoryview(lying), leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(refused, BatchRefused)
        assert refused.error is ErrorCode.INVALID_RECORD
        assert refused.reason == "record 0 of the batch has offset delta 5"
