"""The first answer of several brokers: one that hangs says nothing of the others."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from wire.net.errors import AuthenticationFailed, BrokerUnreachable, NetworkFault

T = TypeVar("T")

ASKED_WITHIN_S: Final = 1.0
"""So soon the last of many brokers is asked as well, and so long others may answer when one of them
does not believe us."""
BETWEEN_S: Final = 0.1
"""As a rule the first answers before the second is asked."""


async def first_answer(questions: Sequence[Callable[[], Awaitable[T]]]) -> T:
    """Ask one soon after the other, and return with the first answer.

    Raises AuthenticationFailed where there is none and somebody does not believe us, and
    BrokerUnreachable, with each reason, once nobody is left.
    """
    answers: list[T] = []
    faults: list[str] = []
    refusals: list[AuthenticationFailed] = []
    pause_s = min(BETWEEN_S, ASKED_WITHIN_S / max(1, len(questions)))

    async def ask(question: Callable[[], Awaitable[T]]) -> None:
        try:
            answers.append(await question())
        except AuthenticationFailed as fault:
            refusals.append(fault)
            scope.deadline = min(scope.deadline, trio.current_time() + ASKED_WITHIN_S)
        except NetworkFault as fault:
            faults.append(str(fault))
        else:
            scope.cancel()

    async with trio.open_nursery() as nursery:
        scope = nursery.cancel_scope
        for question in questions:
            nursery.start_soon(ask, question)
            await trio.sleep(pause_s)
    if answers:
        return answers[0]
    if refusals:
        raise refusals[0]
    raise BrokerUnreachable("; ".join(faults) or "no bootstrap address was given")
