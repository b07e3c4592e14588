"""Which producer ids are whose. Pure.

A site takes a batch whose producer id and sequence it has seen for one that it has, and a mirror
knows its batches by their id. Clusters count their ids from the same start, and a producer that was
sent from a lost site to the other one goes on with its id. So what must not be mistaken for a
producer of another cluster has an id that no broker gives out:

    63         47         31                 0
    |    0     |    0     | a broker's id    |      given out by brokers
    |   luck   |    0     | a broker's id    |      mirrors write their batches with
    |  epoch+1 |  epoch+1 | a broker's id    |      clients of a forwarding endpoint get

A broker takes whatever id a batch of an idempotent producer has.
"""

from typing import Final

ID_BITS: Final = 31
MIDDLE_BITS: Final = 16
OWNER_AT: Final = ID_BITS + MIDDLE_BITS
MOST_GIVEN: Final = 2**ID_BITS - 1
"""Brokers count from 0, so no cluster has come further."""
MOST_OWNER: Final = 2**16 - 1
NO_PRODUCER: Final = -1


def mirror_id(broker_id: int, luck: int) -> int:
    """Return the id by which a mirror writes, of one that a broker gave it.

    `luck`, 1 to MOST_OWNER, tells mirrors apart whose brokers give an id out again. An id that is
    too large to be marked stays as it is.
    """
    assert 1 <= luck <= MOST_OWNER, luck
    return luck << OWNER_AT | broker_id if 0 <= broker_id <= MOST_GIVEN else broker_id


def middle_of(producer_id: int) -> int:
    """Return what stands between owner and the broker's id."""
    return producer_id >> ID_BITS & (2**MIDDLE_BITS - 1)
