"""One connection to one broker: requests go out in order, answers come back in order.

    request() --encode--> [sent] ------------> broker          pending: a FIFO of what was sent
    request() --encode--> [sent] ------------>
    _read:    <-- frame -- correlation id must be the oldest pending's --> wakes its task

Any number of tasks may ask at once. A request is handed to the socket by the task that makes it;
what the socket does not take at once is sent by `_write`, so a cancelled caller never leaves half
a frame behind. A broker answers in the order in which it was asked (Kafka's rule), so one answer
that is overdue means that all behind it are: the connection is given up.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from struct import Struct
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import trio

from wire.headers import SIZE_BYTES, RequestHeader, correlation_id_of, encode_request
from wire.messages.api_versions import ApiVersionsRequest
from wire.net.buffers import BufferPool
from wire.net.errors import ConnectionClosed, RequestTimedOut, UnsupportedApi
from wire.net.frames import MAX_RESPONSE_BYTES, FrameReader, FrameRefused
from wire.net.patience import Motion, Patience
from wire.net.pending import HALF_OF_MANY, AnswerGathering, AnswerListener, Awaiting, PendingAnswer
from wire.net.transport import Transport
from wire.primitives import Buffer, MalformedMessage, pack_nullable_string
from wire.schema import AnyRequest, Piece, Request

R = TypeVar("R")
T = TypeVar("T")
Question: TypeAlias = tuple[Sequence[Piece], int, Awaiting]
"""The body of a request, its size, and who is given the answer."""
MaySend: TypeAlias = Callable[[], bool]
"""Whether what is sent now may still arrive; asked right before each system call."""

DEFAULT_REQUEST_TIMEOUT_MS: Final = 30_000
NO_RIGHT: Final = "the right to send has run out"
_MAX_CORRELATION_ID: Final = 2**31 - 1
_NEVER: Final = float("inf")
_SLACK: Final = 1 / 16
"""Of the timeout: moving the deadline exactly, for every answer, is a cost of its own."""
_HEAD: Final = Struct(">ihhi")


def always() -> bool:
    """Set no limit to sending."""
    return True


class _Nobody(AnswerListener):
    """Has put nothing off."""

    def answers_read(self) -> None:
        pass


_NOBODY: Final = _Nobody()


class LoginSession(Protocol):
    """An authentication that ends; whoever wants to send waits until it is renewed (KIP-368).

    Nobody else may send on the connection while it is renewed.
    """

    async def wait_fresh(self) -> None:
        """Return once it lasts for a while, without letting others run in between."""
        ...


class Connection:
    """A pipelined connection. Made by `connect`, which also starts it and learns the versions."""

    def __init__(
        self,
        transport: Transport,
        *,
        name: str,
        client_id: str,
        request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        buffers: BufferPool | None = None,
    ) -> None:
        self.name = name
        self.session: LoginSession | None = None
        """Set once authenticated, if that has to be renewed."""
        self.may_send: MaySend = always
        self._listener: AnswerListener = _NOBODY
        self._gathering = HALF_OF_MANY
        self._transport = transport
        self._frames = FrameReader(transport, buffers or BufferPool(), max_bytes=max_response_bytes)
        self._client_id = client_id
        self._packed_client_id = pack_nullable_string(client_id)
        self._request_timeout_ms = request_timeout_ms
        self._versions: Mapping[int, range] = {ApiVersionsRequest.API_KEY: range(1)}
        self._next_correlation_id = 0
        self._pending: deque[Awaiting] = deque()
        self._backlog: list[Piece] = []
        self._ends: list[int] = []
        """Where each part of the backlog ends, counted as `_queued_bytes` is."""
        self._queued_bytes = 0
        self._sent_bytes = 0
        self._sent_enough = trio.lowlevel.ParkingLot()
        self._enough_bytes = _NEVER
        """With so many sent somebody is to be woken; fewer would only be a wake-up in vain."""
        self._has_backlog = trio.Event()
        self._overdue = trio.CancelScope()
        self._expected_by = _NEVER
        self._patience = Patience(request_timeout_ms / 1_000)
        self._is_looked_at = False
        """Whether the oldest request is overdue, and waited for because bytes move."""
        self._closed_because: str | None = None

    @property
    def is_open(self) -> bool:
        """Say whether requests can still be sent."""
        return self._closed_because is None

    def start(self, nursery: trio.Nursery) -> None:
        """Run the tasks of this connection; they end with it and never raise."""
        nursery.start_soon(self._read, name=f"read {self.name}")
        nursery.start_soon(self._write, name=f"write {self.name}")
        nursery.start_soon(self._end_overdue, name=f"deadlines {self.name}")

    def close(self, reason: str = "closed by us") -> None:
        """End it at once: whoever waits for an answer gets ConnectionClosed with the reason."""
        if self._closed_because is not None:
            return
        self._closed_because = reason
        self._transport.close()
        self._listener.answers_read()
        now = trio.current_time()
        while self._pending:
            pending = self._pending.popleft()
            kind = RequestTimedOut if pending.deadline <= now else ConnectionClosed
            pending.fail(kind(f"{self.name}: {reason}"))
        self._backlog.clear()
        self._ends.clear()
        self._sent_enough.unpark_all()
        self._has_backlog.set()
        self._overdue.cancel()

    def listen(self, listener: AnswerListener, gathering: AnswerGathering = HALF_OF_MANY) -> None:
        """Tell this listener, and no other, whenever all answers that had come are given out.

        How many of them are waited for at once, ``gathering`` says.
        """
        self._listener = listener
        self._gathering = gathering

    def learn_versions(self, versions: Mapping[int, range]) -> None:
        """Take what the broker speaks, by API key."""
        self._versions = versions

    def serves(self, request: type[Request[Any]]) -> bool:
        """Say whether there is a version of this request that both sides speak."""
        theirs = self._versions.get(request.API_KEY, range(0))
        ours = request.VERSIONS
        return min(theirs.stop, ours.stop) > max(theirs.start, ours.start)

    def version_of(self, request: type[Request[Any]] | Request[Any]) -> int:
        """Return the version that a request of this type would be sent in; UnsupportedApi if none.

        For callers whose request has different fields in different versions.
        """
        theirs = self._versions.get(request.API_KEY, range(0))
        ours = request.VERSIONS
        version = min(theirs.stop, ours.stop) - 1
        if version < max(theirs.start, ours.start):
            raise UnsupportedApi(
                f"{self.name}: API {request.API_KEY}: we speak {_span(ours)}, "
                f"the broker {_span(theirs)}"
            )
        return version

    async def request(
        self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R:
        """Send and return the answer. The caller owns the timeout; `timeout_ms` is the safety net.

        Raises ConnectionClosed, RequestTimedOut, UnsupportedApi; wire.schema.Unencodable if the
        message cannot be said in the version in use, which is our own mistake.
        """
        if self.session is not None:
            await self.session.wait_fresh()
        return await self._enqueue(message, version, timeout_ms).wait()

    async def exchange(
        self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R:
        """Do as `request` does for what authentication itself has to say: it waits for none."""
        return await self._enqueue(message, version, timeout_ms).wait()

    async def send(
        self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> PendingAnswer[R]:
        """Return once the request is handed to the socket, behind all earlier ones.

        Its records must stay unchanged until the answer came, even if this call is cancelled: the
        request is sent nevertheless. Raises as `request` does, except for what the answer brings.
        """
        if self.session is not None:
            await self.session.wait_fresh()
        pending = self._enqueue(message, version, timeout_ms)
        await self._wait_sent(pending.sent_through)
        return pending

    async def post(
        self,
        request: type[AnyRequest],
        version: int,
        questions: Sequence[Question],
        timeout_ms: int | None = None,
    ) -> None:
        """Send bodies encoded by hand, a request each, in one go.

        Return once all that was to be sent before is with the socket, so that it always has more to
        take. A wake-up is dear not for what it does but because a copy of megabytes has taken the
        interpreter's place in the cache before it: about 70 us each. So no task is woken before
        what it waits for is sent.

        Where `post` raises, nobody hears anything; a fault after that goes to those who wait alone.
        Bodies must stay unchanged as records in `send`.
        """
        if self.session is not None:
            await self.session.wait_fresh()
        self._require_open()
        rest = self._packed_client_id
        if version >= request.FLEXIBLE_SINCE:
            rest += b"\x00"
        fixed = _HEAD.size - SIZE_BYTES + len(rest)
        deadline = trio.current_time() + (timeout_ms or self._request_timeout_ms) / 1_000
        parts: list[Piece] = []
        total = 0
        for body, body_bytes, awaiting in questions:
            self._next_correlation_id = (self._next_correlation_id + 1) & _MAX_CORRELATION_ID
            awaiting.correlation_id = number = self._next_correlation_id
            awaiting.deadline = deadline
            size = fixed + body_bytes
            parts.append(_HEAD.pack(size, request.API_KEY, version, number) + rest)
            parts += body
            total += SIZE_BYTES + size
            awaiting.sent_through = self._queued_bytes + total
            self._await_answer(awaiting)
        # Whoever waits has been told: raised here as well, the caller would release the same bytes
        # a second time.
        with suppress(ConnectionClosed):
            before = self._queued_bytes
            self._write_now(parts, total)
            if self._sent_bytes < before:
                await self._wait_sent(before)

    async def ask(
        self,
        request: type[AnyRequest],
        version: int,
        body: Sequence[Piece],
        read: Callable[[Buffer, int], T],
    ) -> T:
        """Send a body encoded by hand and return what `read` finds in the answer.

        Raises as `request` does.
        """
        pending: PendingAnswer[Any] = PendingAnswer(self, request.RESPONSE, version, 0.0)
        await self.post(request, version, [(body, sum(map(len, body)), pending)])
        return await pending.wait_read(read)

    def _enqueue(
        self, message: Request[R], version: int | None, timeout_ms: int | None
    ) -> PendingAnswer[R]:
        assert getattr(message, "acks", 1) != 0, "a Produce with acks=0 is never answered"
        if version is None:
            version = self.version_of(message)
        parts = self._encode(message, version)
        timeout_s = (timeout_ms or self._request_timeout_ms) / 1_000
        pending = PendingAnswer(self, message.RESPONSE, version, trio.current_time() + timeout_s)
        pending.correlation_id = self._next_correlation_id
        size = sum(map(len, parts))
        pending.sent_through = self._queued_bytes + size
        self._await_answer(pending)
        self._write_now(parts, size)
        return pending

    def _await_answer(self, awaiting: Awaiting) -> None:
        if not self._pending:
            self._expect_by(awaiting.deadline)
        self._pending.append(awaiting)

    def _expect_by(self, deadline: float) -> None:
        self._overdue.deadline = self._expected_by = deadline
        self._is_looked_at = False

    def _require_open(self) -> None:
        if self._closed_because is not None:
            raise ConnectionClosed(f"{self.name}: {self._closed_because}")

    def _encode(self, message: Request[Any], version: int) -> list[Piece]:
        self._require_open()
        self._next_correlation_id = (self._next_correlation_id + 1) & _MAX_CORRELATION_ID
        header = RequestHeader(
            api_key=message.API_KEY,
            api_version=version,
            correlation_id=self._next_correlation_id,
            client_id=self._client_id,
        )
        return encode_request(header, message)

    def _write_now(self, parts: list[Piece], size: int) -> None:
        """Hand over what the socket takes, if nothing older waits; leave the rest to `_write`."""
        self._require_right()
        queued = self._queued_bytes
        self._queued_bytes += size
        sent = 0
        if not self._backlog:
            try:
                sent = self._transport.send_now(parts)
            except (OSError, trio.ClosedResourceError) as fault:
                self.close(str(fault))
                raise ConnectionClosed(f"{self.name}: {fault}") from fault
        if sent < size:
            self._backlog += parts
            self._ends += islice(accumulate(map(len, parts), initial=queued), 1, None)
            self._has_backlog.set()
        if sent:
            self._note_sent(sent)

    def _require_right(self) -> None:
        """Close without another byte, in the middle of a frame too, who has lost the right."""
        if not self.may_send():
            self.close(NO_RIGHT)
            raise ConnectionClosed(f"{self.name}: {NO_RIGHT}")

    def _note_sent(self, sent: int) -> None:
        self._sent_bytes += sent
        if self._backlog:
            whole = bisect_right(self._ends, self._sent_bytes)
            del self._backlog[:whole], self._ends[:whole]
        if self._backlog:
            first = self._backlog[0]
            self._backlog[0] = memoryview(first)[len(first) + self._sent_bytes - self._ends[0] :]
        if self._sent_bytes >= self._enough_bytes:
            self._enough_bytes = _NEVER
            self._sent_enough.unpark_all()

    async def _wait_sent(self, through: int) -> None:
        while self._sent_bytes < through:
            if self._closed_because is not None:
                raise ConnectionClosed(f"{self.name}: {self._closed_because}")
            self._enough_bytes = min(self._enough_bytes, through)
            await self._sent_enough.park()

    async def _write(self) -> None:
        try:
            while self.is_open:
                await self._has_backlog.wait()
                while self._backlog:
                    await self._transport.wait_sendable()
                    self._require_right()
                    self._note_sent(self._transport.send_now(self._backlog))
                self._has_backlog = trio.Event()
        except (OSError, trio.ClosedResourceError, ConnectionClosed) as fault:
            self.close(str(fault))
        finally:
            self.close("its tasks were cancelled")

    async def _read(self) -> None:
        reason = "its tasks were cancelled"
        try:
            reason = await self._settle_answers()
        except (OSError, trio.ClosedResourceError, FrameRefused, MalformedMessage) as fault:
            reason = str(fault) or "closed by us"
        finally:
            self.close(reason)

    async def _end_overdue(self) -> None:
        """Close the connection once its oldest answer is overdue and nothing moves any more."""
        try:
            while self.is_open:
                with trio.CancelScope(deadline=self._expected_by) as self._overdue:
                    await trio.sleep_forever()
                if self._pending:
                    self._look_at_overdue()
        finally:
            self.close("its tasks were cancelled")

    def _look_at_overdue(self) -> None:
        oldest, now_s = self._pending[0], trio.current_time()
        if not self._is_looked_at:
            self._patience.begin()
        unacknowledged, unread = self._transport.waiting_bytes()
        delivered = self._sent_bytes - unacknowledged
        motion = Motion(
            request=oldest.correlation_id,
            delivered_bytes=delivered,
            received_bytes=self._frames.received_bytes + unread,
            is_delivered=delivered >= oldest.sent_through,
            is_coming=bool(unread) or self._frames.is_within_one,
        )
        later_s = self._patience.look_again_at(now_s, motion)
        if later_s is None:
            self.close("no answer in time")
        else:
            self._expect_by(later_s)
            self._is_looked_at = True

    async def _settle_answers(self) -> str:
        """Give each frame to the oldest pending request; return why that ended."""
        while True:
            if not self._frames.holds_another:
                self._listener.answers_read()
                least = self._gathering.least_bytes(self._pending) if self._frames.is_empty else 0
                if least:
                    await self._frames.gather(least)
            frame = await self._frames.receive()
            if frame is None:
                return "closed by the broker"
            number = correlation_id_of(frame)
            if not self._pending or self._pending[0].correlation_id != number:
                return f"an answer to request {number}, which is not the oldest unanswered one"
            awaiting = self._pending.popleft()
            try:
                awaiting.settle(frame)
            except MalformedMessage:
                self._pending.appendleft(awaiting)  # to be told when the connection is closed
                raise
            if not self._pending:
                self._expect_by(_NEVER)
            elif self._pending[0].deadline > self._expected_by:
                self._expect_by(
                    self._pending[0].deadline + self._request_timeout_ms / 1_000 * _SLACK
                )


def _span(versions: range) -> str:
    return f"{versions.start}-{versions.stop - 1}" if versions else "none"
