"""The form of a guard, and what several of them share."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from broker.authorizer.authorizer import EVERY_RIGHT
from broker.context import Call, Handler
from broker.fairness import Turns
from wire.acls import Operation, ResourceType
from wire.values import frozen

T = TypeVar("T")

Stand: TypeAlias = Callable[[Any, Call, Handler], Awaitable[Any]]
"""`await stand(request, call, handle)` returns the answer, the handler's or one of its own."""


class AskedRight(NamedTuple):
    """A right that an API asks about."""

    operation: Operation
    kind: ResourceType

    def __str__(self) -> str:
        """Return it in Kafka's words, as `READ of TOPIC`."""
        return f"{self.operation.name} of {self.kind.name}"


@frozen(kw_only=False)
class Guard:
    """How an API is guarded, and all rights that may be asked about."""

    stand: Stand
    needs: tuple[AskedRight, ...] = ()


async def let_pass(request: Any, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - one per API
    """Ask nothing: everybody may, or the handler asks itself about each of many things."""
    return await handle(request, call)


def as_broker(call: Call) -> Call:
    """Return the call of somebody who has CLUSTER_ACTION, which makes a broker of the cluster."""
    return replace(call, is_broker=True, rights=EVERY_RIGHT)


def may_topic(call: Call, operation: Operation, name: str) -> bool:
    """Say whether this may be done with a topic."""
    return call.rights.may(operation, ResourceType.TOPIC, name)


def may_group(call: Call, operation: Operation, group_id: str) -> bool:
    """Say whether this may be done with a group."""
    return call.rights.may(operation, ResourceType.GROUP, group_id)


def may_transact(call: Call, operation: Operation, transactional_id: str) -> bool:
    """Say whether this may be done with a transactional id."""
    return call.rights.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


async def sorted_out(
    asked: Iterable[T], is_allowed: Callable[[T], bool]
) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Return what is allowed and what is not, leaving the others their turn."""
    turns = Turns()
    kept: list[T] = []
    refused: list[T] = []
    for one in asked:
        (kept if is_allowed(one) else refused).append(one)
        await turns.pass_on()
    return tuple(kept), tuple(refused)
