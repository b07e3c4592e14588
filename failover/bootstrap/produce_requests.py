"""Produce requests on their way: whether they are answered, and whose their batches are.

A batch whose producer has its id from this epoch passes as it is; eight bytes of it are read. Of
another one those eight bytes are changed, and the checksum, which is moved on by the difference:
the broker still checks the records against what the client has sent (`crc32c_with_head`). The
frame is changed where it lies; there is no I/O here.
"""

from struct import Struct
from typing import Final

from failover.bootstrap.owned_ids import owned
from failover.bootstrap.spoken import NotCarried
from runtime.producer_ids import NO_PRODUCER
from wire.hot.produce_served import read_request
from wire.messages.produce import ProduceRequest
from wire.primitives import MalformedMessage
from wire.record_batch.checksum import crc32c_with_head
from wire.request_headers import decode_request_header
from wire.schema import decode_prefix

_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_UNDER_CRC_AT: Final = 21
_PRODUCER_AT: Final = 43
_HEADER_BYTES: Final = 61
_LENGTH_STARTS_AT: Final = 12
_LENGTH_AT: Final = 8
_LENGTH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_PRODUCER: Final = Struct(">q")
_MAGIC: Final = 2


def make_epochs_own(frame: bytearray | memoryview, epoch: int) -> bool:
    """Make the batches of a request this epoch's, in place; tell whether it will be answered.

    `frame` is the request without its size. Raises MalformedMessage, NotCarried and IdNotKnown.
    """
    view = memoryview(frame)
    header, position = decode_request_header(view)
    request = read_request(view, header.api_version, position)
    if request is None:
        request, _ = decode_prefix(ProduceRequest, view, header.api_version, position)
    if request.transactional_id is not None:
        raise NotCarried(
            f"a transaction of {request.transactional_id!r}: transactions are not carried; such an "
            "application must reach the brokers themselves"
        )
    for topic in request.topic_data:
        for partition in topic.partition_data:
            if isinstance(partition.records, memoryview):
                _own_batches(partition.records, epoch)
    return request.acks != 0


def _own_batches(records: memoryview, epoch: int) -> None:
    start = 0
    while len(records) - start > _MAGIC_AT and records[start + _MAGIC_AT] == _MAGIC:
        (length,) = _LENGTH.unpack_from(records, start + _LENGTH_AT)
        end = start + _LENGTH_STARTS_AT + length
        if not start + _HEADER_BYTES <= end <= len(records):
            raise MalformedMessage(
                f"a batch of {length} bytes", position=start, where="records of a Produce request"
            )
        _own_batch(records[start:end], epoch)
        start = end


def _own_batch(batch: memoryview, epoch: int) -> None:
    (producer_id,) = _PRODUCER.unpack_from(batch, _PRODUCER_AT)
    if producer_id == NO_PRODUCER:
        return
    known_as = owned(producer_id, epoch)
    if known_as == producer_id:
        return
    head = batch[_UNDER_CRC_AT:_HEADER_BYTES]
    before = bytes(head)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, known_as)
    (crc,) = _CRC.unpack_from(batch, _CRC_AT)
    crc = crc32c_with_head(head, batch[_HEADER_BYTES:], instead_of=before, crc=crc)
    _CRC.pack_into(batch, _CRC_AT, crc)
