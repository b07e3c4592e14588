"""Who may read after a switch: clients that have asked where their group stands at the new site.

A member that is cut off from the old site reads on from the position in its memory until it hears,
by its next heartbeat, that it is no member here. Offsets of two sites differ, so its first records
would be the wrong ones. Until it has asked for its group's position it is told to look for the
leader again. A client is known by its host and its client id, and its connections to all brokers
have those in common. Pure.
"""

from typing import Final, NamedTuple

from wire.errors import ErrorCode
from wire.headers import RequestHeader, encode_response
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.messages.list_offsets import ListOffsetsRequest
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.primitives import Buffer
from wire.request_headers import decode_request_header
from wire.schema import decode_prefix

GUARDED_FOR_S: Final = 10.0
"""Three heartbeats and a rebalance. A consumer without a group asks for no position, and reads on
behind that."""
RECENT_MS: Final = 30_000
"""Clients may come from another site where an endpoint begins within this time behind a switch: it
was killed meanwhile, or another one was. It is more than GUARDED_FOR_S, as clocks differ."""
MOST: Final = 10_000
LONGEST_ID: Final = 255
"""A client may say any id, and any number of them: those beyond the bounds wait for the moment that
they are guarded for."""
FETCH: Final = FetchRequest.API_KEY
ASKS_WHERE: Final = frozenset({OffsetFetchRequest.API_KEY, ListOffsetsRequest.API_KEY})


def may_be_amid_switch(written_ms: int, now_ms: int) -> bool:
    """Tell whether clients may come from another site, where an endpoint begins.

    `written_ms` is when the witness was told which site is active, by its own wall clock.
    """
    return abs(now_ms - written_ms) < RECENT_MS


class ArrivedClient(NamedTuple):
    """One application, as far as connections tell."""

    host: str
    client_id: str | None


class ClientArrivals:
    """Who has asked since the last switch, and until when that is looked at."""

    def __init__(self) -> None:
        self._until = 0.0
        self._arrived: set[ArrivedClient] = set()

    def begin(self, now: float) -> None:
        """Ask everybody anew: another site has become active."""
        self._until = now + GUARDED_FOR_S
        self._arrived.clear()

    def is_guarded(self, now: float) -> bool:
        """Tell whether clients have to ask first, for a moment behind a switch."""
        return now < self._until

    def note(self, client: ArrivedClient, now: float) -> None:
        """Take over that a client has asked where it stands."""
        is_long = len(client.client_id or "") > LONGEST_ID
        if self.is_guarded(now) and not is_long and len(self._arrived) < MOST:
            self._arrived.add(client)

    def may_read(self, client: ArrivedClient, now: float) -> bool:
        """Tell whether the client has asked, or has had the time to."""
        return not self.is_guarded(now) or client in self._arrived


def look_again(frame: Buffer) -> bytes:
    """Return the whole answer to a Fetch request that has its client ask for the leaders again.

    `frame` is the request without its size. Raises MalformedMessage.
    """
    header, request = _read(frame)
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    topics = tuple(
        FetchableTopicResponse(
            topic=topic.topic,
            partitions=tuple(
                FetchPartitionData(
                    partition_index=one.partition,
                    error_code=code,
                    high_watermark=-1,
                    records=b"",
                )
                for one in topic.partitions
            ),
        )
        for topic in request.topics
    )
    # A session names what is read: the client is to say it in full.
    lost = ErrorCode.FETCH_SESSION_ID_NOT_FOUND if request.session_id else ErrorCode.NONE
    answer = FetchResponse(error_code=lost, responses=() if lost else topics)
    return b"".join(encode_response(header.correlation_id, answer, header.api_version))


def _read(frame: Buffer) -> tuple[RequestHeader, FetchRequest]:
    view = memoryview(frame)
    header, position = decode_request_header(view)
    return header, decode_prefix(FetchRequest, view, header.api_version, position)[0]
