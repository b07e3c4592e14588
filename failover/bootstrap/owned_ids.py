"""Producer ids that say which site gave them out, and in which epoch. Pure.

A broker knows a producer by its id, and takes a batch whose id and sequence it has seen for one
that it has: it acknowledges and appends nothing. Each site counts its ids from the same start, so
an id of dc1 may be another producer's on dc2. Clients of a forwarding endpoint get ids that no
site gives out by itself:

    63         47         31                 0
    |  owner   |  origin  | the broker's id  |      owner, origin: an epoch + 1

The origin is the epoch in which the id was given out, so no two producers have the same id. The
owner is the epoch of the connection that a batch comes by. A producer that lives through a switch
goes on with the same id in its own eyes; the brokers of the new epoch see one of which they know
nothing, and take its first batch whatever its sequence is. Nothing of it is to be found in logs of
earlier epochs, so it cannot fall out of order either when it comes back to the first site.
"""

from typing import Final

from runtime.producer_ids import ID_BITS, MOST_GIVEN, MOST_OWNER, OWNER_AT, middle_of

MOST_EPOCH: Final = MOST_OWNER - 1


class IdNotKnown(ValueError):
    """A producer id that was not given out through an endpoint, or cannot be."""


def given(broker_id: int, epoch: int) -> int:
    """Return the id that a client gets, of one that a broker gave out in this epoch.

    Raises IdNotKnown for one beyond what can be told apart.
    """
    if not (0 <= broker_id <= MOST_GIVEN and 0 <= epoch <= MOST_EPOCH):
        raise IdNotKnown(
            f"producer id {broker_id} of epoch {epoch}: ids to {MOST_GIVEN} and epochs to "
            f"{MOST_EPOCH} can be told apart"
        )
    mark = epoch + 1
    return mark << OWNER_AT | mark << ID_BITS | broker_id


def owned(producer_id: int, epoch: int) -> int:
    """Return the id by which brokers of this epoch know the producer. Raises IdNotKnown."""
    if not middle_of(producer_id):
        raise IdNotKnown(
            f"producer id {producer_id} was given out by a broker itself, and may be another "
            "producer's at the active site; restart the producer"
        )
    return (epoch + 1) << OWNER_AT | producer_id & ((1 << OWNER_AT) - 1)
