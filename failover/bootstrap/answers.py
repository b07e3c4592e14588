"""Answers that are changed on their way to a client, or made here. Pure."""

from dataclasses import replace

from failover.bootstrap.owned_ids import given
from wire.errors import ErrorCode
from wire.headers import decode_response, encode_response
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from wire.messages.init_producer_id import InitProducerIdResponse
from wire.messages.sasl_authenticate import SaslAuthenticateResponse
from wire.primitives import Buffer


def new_producer(frame: Buffer, version: int, epoch: int) -> bytes:
    """Return the answer to InitProducerId with an id of this epoch. Raises IdNotKnown."""
    answer = decode_response(InitProducerIdResponse, frame, version)
    if answer.error_code == ErrorCode.NONE:
        answer = replace(answer, producer_id=given(answer.producer_id, epoch))
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    return b"".join(encode_response(correlation_id, answer, version))


def no_transactions(correlation_id: int, version: int) -> bytes:
    """Return the answer to a transactional producer: it is told at once that it may not."""
    answer = InitProducerIdResponse(
        error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_epoch=-1
    )
    return b"".join(encode_response(correlation_id, answer, version))


def no_new_groups(correlation_id: int, version: int) -> bytes:
    """Return the answer to a member of a group of the new protocol: it is told to use the other."""
    answer = ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="failover bootstrap carries no groups of the new protocol (KIP-848), which go"
        " by a cluster's own ids of topics; set group.protocol=classic",
        member_epoch=0,
        heartbeat_interval_ms=0,
    )
    return b"".join(encode_response(correlation_id, answer, version))


def lets_in(frame: Buffer, version: int) -> bool:
    """Tell whether an answer to SaslAuthenticate may be the last one of a login that succeeds.

    A step of SCRAM (RFC 5802) and the refusal of a token (RFC 7628) have no error code either.
    """
    answer = decode_response(SaslAuthenticateResponse, frame, version)
    is_step = bytes(answer.auth_bytes[:2]) == b"r=" or bytes(answer.auth_bytes[:1]) == b"{"
    return answer.error_code == ErrorCode.NONE and not is_step
