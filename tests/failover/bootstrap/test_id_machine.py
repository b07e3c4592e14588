"""Producers that live through any order of switches: what is acknowledged was appended.

Two sites give producer ids out from the same start, and each takes a batch of an id and a sequence
that it has seen for one that it has. Clients try again what was not answered, also at another site.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from failover.bootstrap.owned_ids import given, owned
from runtime.producer_ids import mirror_id

CLIENTS = 3
REMEMBERED = 5
"""Batches of each producer, as brokers have it."""


@dataclass
class Site:
    """One partition on one site, by Kafka's rules for idempotent producers."""

    log: list[str] = field(default_factory=list)
    ids: int = 0
    _known: dict[int, list[int]] = field(default_factory=dict)

    def new_id(self) -> int:
        self.ids += 1
        return self.ids - 1

    def append(self, producer_id: int, sequence: int, value: str) -> bool:
        """Tell whether the batch is acknowledged; one out of order is not."""
        known = self._known.get(producer_id)
        if known is None or sequence == known[-1] + 1:
            self._known[producer_id] = [*(known or []), sequence][-REMEMBERED:]
            self.log.append(value)
            return True
        return sequence in known


@dataclass
class Client:
    """A producer: its id as it knows it, and what it tries to write."""

    producer_id: int | None = None
    sequence: int = 0
    number: int = 0
    is_tried: bool = False


class Producers(RuleBasedStateMachine):
    """Clients behind an endpoint, before two sites of which one is active."""

    give: Callable[[int, int], int] = staticmethod(given)
    own: Callable[[int, int], int] = staticmethod(owned)
    of_mirror: Callable[[int, int], int] = staticmethod(mirror_id)

    def __init__(self) -> None:
        super().__init__()
        self.sites = [Site(), Site()]
        self.epoch = 0
        self.clients = [Client() for _ in range(CLIENTS)]
        self.mirrors = [type(self).of_mirror(site.new_id(), 9) for site in self.sites]
        self.mirrored = [0, 0]

    @property
    def active(self) -> Site:
        return self.sites[self.epoch % 2]

    @rule(number=st.integers(0, CLIENTS - 1), is_answered=st.booleans())
    def write(self, number: int, is_answered: bool) -> None:
        client, site, epoch = self.clients[number], self.active, self.epoch
        if client.producer_id is None:
            client.producer_id = type(self).give(site.new_id(), epoch)
            client.sequence = 0
        value = f"{number}-{client.number}"
        is_taken = site.append(type(self).own(client.producer_id, epoch), client.sequence, value)
        client.is_tried = True
        if not is_taken:
            client.producer_id = None
        elif is_answered:
            assert value in site.log, f"{value} is acknowledged and was not appended"
            client.sequence += 1
            client.number += 1
            client.is_tried = False

    @rule(switches=st.integers(1, 3))
    def promote(self, switches: int) -> None:
        self.epoch += switches

    @rule()
    def mirror(self) -> None:
        """Have what the active site has on the other one, each record once."""
        source, target = self.epoch % 2, (self.epoch + 1) % 2
        for value in self.sites[source].log:
            if value not in self.sites[target].log:
                at = self.mirrored[target]
                assert self.sites[target].append(self.mirrors[target], at, value)
                assert value in self.sites[target].log, "a client's batch passes for the mirror's"
                self.mirrored[target] += 1

    @rule(number=st.integers(0, CLIENTS - 1))
    def begin_anew(self, number: int) -> None:
        client = self.clients[number]
        if not client.is_tried:
            client.producer_id = None


def test_what_is_acknowledged_was_appended_in_any_order_of_switches() -> None:
    wanted = settings(max_examples=40, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(Producers, settings=wanted)


def as_given(producer_id: int, _: int) -> int:
    return producer_id


class Plain(Producers):
    """The same where ids are passed on as brokers have given them out."""

    give = staticmethod(as_given)
    own = staticmethod(as_given)
    of_mirror = staticmethod(as_given)


@pytest.mark.parametrize("machine", [Producers, Plain])
def test_ids_as_brokers_give_them_out_would_not_do(machine: type[Producers]) -> None:
    them = machine()
    for _ in range(2):
        them.write(0, is_answered=True)
    them.promote(1)
    for _ in range(3):
        them.write(1, is_answered=True)
    if machine is Producers:
        them.write(0, is_answered=True)
    else:
        with pytest.raises(AssertionError, match="0-2 is acknowledged and was not appended"):
            them.write(0, is_answered=True)
