"""Whom to ask next: a broker that hears no news any more must not be the only one asked. Pure."""

from collections.abc import Iterable
from typing import TypeAlias

from wire.net.transport import Address

Question: TypeAlias = str | None
"""What is asked: a topic, "" for the brokers alone, None for all topics there are; or a group."""


def question(topics: tuple[str, ...] | None) -> Question:
    """Return by what a lookup takes its turns; of several topics the first one stands for all."""
    return None if topics is None else next(iter(topics), "")


def question_of_groups(groups: Iterable[str]) -> Question:
    """Return the same for coordinators; no topic has a colon in its name."""
    return f":{next(iter(groups))}"


class BrokerTurns:
    """The broker that was asked last, by question.

    Each question goes round by itself: two that alternate would else each meet the same of two
    brokers for ever.
    """

    def __init__(self) -> None:
        self._last: dict[Question, Address] = {}
        self._latest: Address | None = None

    def others(self, asked: Question, brokers: Iterable[Address]) -> list[Address]:
        """Return the brokers but the one asked last, in the order in which it is their turn."""
        last = self._last.get(asked, self._latest)
        known = sorted(set(brokers) - {last})
        return known if last is None else sorted(known, key=lambda address: address < last)

    def note(self, asked: Question, broker: Address) -> None:
        """Remember who is asked."""
        self._last[asked] = self._latest = broker
