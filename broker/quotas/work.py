"""How long the event loop has worked on one request: the time of its steps, none of its waits."""

from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from time import perf_counter_ns
from types import coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_PERCENT_SECONDS_PER_NS: Final = 100 / 1_000_000_000


@dataclass(slots=True)
class Work:
    """The time of a request's steps."""

    spent_ns: int = 0

    @property
    def percent_seconds(self) -> float:
        """Return it as `request_percentage` counts: a second of the event loop is a hundred."""
        return self.spent_ns * _PERCENT_SECONDS_PER_NS


@coroutine
def measured(handled: Coroutine[Any, Any, T], work: Work) -> Generator[Any, Any, T]:
    """Run to the end what is handled, and add the time of each of its steps."""
    sent: Any = None
    raised: BaseException | None = None
    while True:
        began_ns = perf_counter_ns()
        try:
            waits_for = handled.send(sent) if raised is None else handled.throw(raised)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            work.spent_ns += perf_counter_ns() - began_ns
        sent, raised = None, None
        try:
            sent = yield waits_for
        except BaseException as thrown:  # noqa: BLE001 - given on, as every `await` does
            raised = thrown
