"""The number of the newest evidence, kept in the witness: an old copy of it has a lower one.

A promotion writes evidence when it begins, before and behind its switch, and when it is taken back.
It writes the next number to the witness first, so no evidence has a higher number than the witness
that it was written from.
"""

from runtime.coordination.witness import EvidenceNumber, WitnessPaths
from runtime.coordination.zookeeper import BadVersion, NodeExists, NoNode, ZNode, ZooKeeper
from runtime.pair.evidence import LARGEST_NUMBER


async def read_number(zookeeper: ZooKeeper, paths: WitnessPaths) -> int:
    """Return the number in the witness, 0 where no promotion has written one.

    Raises WitnessGarbled and ZooKeeperFault.
    """
    node = await zookeeper.get(paths.evidence_number)
    return _number(node, paths)


async def take_number(zookeeper: ZooKeeper, paths: WitnessPaths, *, above: int = 0) -> int:
    """Return a number higher than the witness's, and than `above`, once the witness holds it.

    Numbers may be left out. Raises WitnessGarbled and ZooKeeperFault.
    """
    while True:
        node = await zookeeper.get(paths.evidence_number)
        known = (
            0
            if node is None
            else EvidenceNumber.decode(node.data, topic_set=paths.topic_set).number
        )
        number = min(max(known, above, 0) + 1, LARGEST_NUMBER)
        data = EvidenceNumber(number=number).encode()
        try:
            if node is None:
                await zookeeper.create(paths.evidence_number, data, make_parents=True)
            else:
                await zookeeper.set(paths.evidence_number, data, version=node.version)
        except (NodeExists, NoNode, BadVersion):
            continue  # an attempt whose answer was lost
        return number


def _number(node: ZNode | None, paths: WitnessPaths) -> int:
    if node is None:
        return 0
    return EvidenceNumber.decode(node.data, topic_set=paths.topic_set).number
