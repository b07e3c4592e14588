"""An operator's hold: nothing is promoted by itself while it stands, as one node in the witness.

    {"reason": "the line to dc1 is being moved",   null where none was given
     "given": {"what": "failover hold", "user": "jo", "host": "ops1", "at_ms": 1763620000000}}

A node that cannot be read is a hold as well: somebody has put it there.
"""

import json
from typing import Final, Self

from failover.journal.commands_given import GivenCommand, given_here
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import BadVersion, NodeExists, NoNode, ZooKeeper
from runtime.process.output import escaped
from runtime.untrusted_json import read_json, text
from wire.values import frozen

MOST_CHARACTERS: Final = 500
"""Of a reason."""


class BadReason(ValueError):
    """The reason of a hold cannot be kept; the message says why."""


@frozen
class Hold:
    """Somebody wants no promotion now; `garbled` says what is wrong with a node nobody can read."""

    reason: str | None = None
    given: GivenCommand | None = None
    garbled: str | None = None

    def __str__(self) -> str:
        if self.given is None:
            return f"held, by a node in the witness that cannot be read ({self.garbled})"
        return f"held ({self.given}){': ' + escaped(self.reason) if self.reason else ''}"

    def encode(self) -> bytes:
        """Return the JSON of the node."""
        assert self.given is not None, "a hold that could not be read is not written"
        return json.dumps({"reason": self.reason, "given": self.given.document()}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what a node says; one that cannot be read is a hold too."""
        try:
            found = read_json(data)
            reason = found["reason"]
            return cls(
                reason=None if reason is None else text(reason),
                given=GivenCommand.of_document(found["given"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            return cls(garbled=f"{type(error).__name__}: {error}")

    def document(self) -> dict[str, object]:
        """Return the JSON form for people's programs."""
        return {
            "reason": self.reason,
            "given": None if self.given is None else self.given.document(),
            "garbled": self.garbled,
        }


def hold_here(what: str, reason: str | None, at_ms: int) -> Hold:
    """Return a hold that is given to this process; raises BadReason."""
    if reason is not None and not reason.strip():
        raise BadReason("--reason is empty: leave it out, or say why")
    if reason is not None and len(reason) > MOST_CHARACTERS:
        raise BadReason(
            f"--reason has {len(reason)} characters, and {MOST_CHARACTERS} are kept at most"
        )
    return Hold(reason=reason, given=given_here(what, at_ms))


async def read_hold(zookeeper: ZooKeeper, paths: WitnessPaths) -> Hold | None:
    """Return the hold, None where nobody holds; raises ZooKeeperFault."""
    node = await zookeeper.get(paths.hold)
    return None if node is None else Hold.decode(node.data)


async def put_hold(zookeeper: ZooKeeper, paths: WitnessPaths, hold: Hold) -> Hold | None:
    """Hold; return the hold that this one replaces. Raises ZooKeeperFault."""
    while True:
        node = await zookeeper.get(paths.hold)
        try:
            if node is None:
                await zookeeper.create(paths.hold, hold.encode(), make_parents=True)
                return None
            await zookeeper.set(paths.hold, hold.encode(), version=node.version)
        except (NodeExists, NoNode, BadVersion):
            continue  # somebody else holds or releases at the same moment
        return Hold.decode(node.data)


async def take_hold_away(zookeeper: ZooKeeper, paths: WitnessPaths) -> Hold | None:
    """Release; return the hold that stood, None where there was none. Raises ZooKeeperFault."""
    while True:
        node = await zookeeper.get(paths.hold)
        if node is None:
            return None
        try:
            await zookeeper.delete(paths.hold, version=node.version)
        except (NoNode, BadVersion):
            continue  # somebody else holds or releases at the same moment
        return Hold.decode(node.data)
