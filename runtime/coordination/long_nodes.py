"""Long documents in ZooKeeper: a head in one node, and its parts below another."""

from collections.abc import Collection
from dataclasses import replace

from runtime.coordination.long_document import LongDocument, PartMissing, join, references
from runtime.coordination.zookeeper import Check, Delete, NodeExists, NoNode, ZNode, ZooKeeper


async def read_document(zookeeper: ZooKeeper, path: str, parts_path: str) -> ZNode | None:
    """Return a head's node with the whole document as its data; None where there is none.

    A head that is written anew meanwhile is read again. Raises ValueError naming what is wrong with
    the document, and what reading raises.
    """
    while True:
        node = await zookeeper.get(path)
        if node is None:
            return None
        try:
            return replace(node, data=await read_parts(zookeeper, node.data, parts_path))
        except PartMissing:
            again = await zookeeper.get(path)
            if again is not None and again.version == node.version:
                raise


async def read_parts(zookeeper: ZooKeeper, head: bytes, parts_path: str) -> bytes:
    """Return the whole document of a head; raises PartMissing, and ValueError."""
    parts: dict[str, bytes] = {}
    for reference in references(head):
        for name in reference.names:
            node = await zookeeper.get(f"{parts_path}/{name}")
            if node is not None:
                parts[name] = node.data
    return join(head, parts)


async def write_parts(
    zookeeper: ZooKeeper, document: LongDocument, parts_path: str, written: Collection[str] = ()
) -> None:
    """Write the parts that a head is going to name, without those that are written already."""
    missing = [name for name in document.parts if name not in written]
    if not missing:
        return
    await zookeeper.ensure(parts_path)
    for name in missing:
        path, data = f"{parts_path}/{name}", document.parts[name]
        try:
            await zookeeper.create(path, data)
        except NodeExists:
            node = await zookeeper.get(path)
            if node is None or node.data != data:
                await zookeeper.set(path, data)


async def delete_unnamed_parts(
    zookeeper: ZooKeeper, head: bytes, parts_path: str, claim: Check
) -> None:
    """Delete the parts that a head does not name, while the claim on the head holds.

    Raises BadVersion where somebody else has written the head, ValueError, and what writing raises.
    """
    named = {name for reference in references(head) for name in reference.names}
    for name in await zookeeper.children(parts_path) or ():
        if name not in named:
            try:
                await zookeeper.transaction((claim, Delete(path=f"{parts_path}/{name}")))
            except NoNode:
                continue  # an attempt whose answer was lost
