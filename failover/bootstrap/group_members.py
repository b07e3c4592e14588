"""Members of consumer groups whose connections are forwarded, as the witness knows them.

A planned promotion waits, before the fence, for members that would not leave by themselves. Those
behind an endpoint do (`leaving`), so each has a node like that of a client of `failover.client`:

    <path>/groups/<group>/endpoint-<session>-<digest of the member's id>     ephemeral
"""

from collections import Counter
from collections.abc import Set
from contextlib import suppress
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import uuid4

import trio

from failover.client.carried import Carried
from failover.client.position_handover import Handover
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import NodeExists, NoNode, ZooKeeper, ZooKeeperFault
from runtime.process.fault_note import FaultNote

TRY_AGAIN_S: Final = 1.0
MOST: Final = 10_000
"""Of an endpoint: each is a node in the witness."""
LONGEST_GROUP: Final = 1_000
"""Kafka has no limit but a request's; the witness keeps its nodes in memory."""
_LAST_EPOCH: Final = 2**31 - 1
_NOTHING_CARRIED: Final = Handover(epoch=_LAST_EPOCH, carried=Carried(site="")).encode()
"""Clients of `failover.client` in the same group need not wait for what this member carries."""


class Member(NamedTuple):
    """One member of one group."""

    group: str
    member_id: str


class GroupMembers:
    """Whom the connections of this endpoint have spoken for, each as often as connections do."""

    def __init__(self) -> None:
        self._counted: Counter[Member] = Counter()
        self._news = trio.Event()
        self._fault = FaultNote("members in the witness")
        self._full = FaultNote("members at this endpoint")

    @property
    def known(self) -> Set[Member]:
        """Return the members that are there now."""
        return self._counted.keys()

    def add(self, member: Member) -> bool:
        """Note that a connection speaks for this member, unless that is too much; say whether."""
        if len(member.group) > LONGEST_GROUP:
            return False
        if member not in self._counted and len(self._counted) >= MOST:
            self._full.note(f"a promotion waits for members beyond {MOST} as if they stayed")
            return False
        self._counted[member] += 1
        self._news.set()
        return True

    def remove(self, member: Member) -> None:
        """Note that the connection has ended."""
        self._counted[member] -= 1
        if not self._counted[member]:
            del self._counted[member]
        self._news.set()

    async def keep_registered(self, zookeeper: ZooKeeper, paths: WitnessPaths) -> None:
        """Have a node for each member as long as this session lasts."""
        session = uuid4().hex
        there: set[Member] = set()
        while True:
            self._news = trio.Event()
            wanted = set(self._counted)
            try:
                for member in there - wanted:
                    with suppress(NoNode):
                        await zookeeper.delete(_path(paths, session, member))
                    there.remove(member)
                for member in wanted - there:
                    path = _path(paths, session, member)
                    with suppress(NodeExists):
                        await zookeeper.create(
                            path, _NOTHING_CARRIED, ephemeral=True, make_parents=True
                        )
                    there.add(member)
            except ZooKeeperFault as fault:
                self._fault.note(f"a promotion waits for members as if they stayed: {fault}")
                await trio.sleep(TRY_AGAIN_S)
            else:
                self._fault.clear()
                await self._news.wait()


def _path(paths: WitnessPaths, session: str, member: Member) -> str:
    digest = sha256(member.member_id.encode()).hexdigest()[:16]
    return f"{paths.group(member.group)}/endpoint-{session}-{digest}"
