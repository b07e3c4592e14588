"""What `mirror check` says of internal topics: who may write them, and who else has."""

from dataclasses import replace

import pytest

from mirror.commands.checks.internal_topics import internal_topics, told_writers
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from tests.doubles.map_writers import MemoryWriters, writers_of
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from tests.runtime.rights.building import ANYTHING
from wire.net.rights import ALL_OPERATIONS, ALLOW, DENY, PREFIXED, READ, WRITE, Right
from wire.record_batch import Record, build_batch

MAP = map_topic_name("dc1")
MIRROR = Right(name=MAP, principal="User:mirror", host="*", operation=WRITE, permission=ALLOW)
ALONE = f"{MAP} on dc2 may be written by User:mirror, and by super users"


@pytest.mark.parametrize(
    "more",
    [
        replace(MIRROR, principal="User:app", operation=READ),
        replace(MIRROR, principal="User:app", name="orders"),
        replace(MIRROR, principal="User:app", name="dc2", pattern=PREFIXED),
    ],
)
def test_a_map_that_the_mirrors_user_alone_may_write_is_as_it_should_be(more: Right) -> None:
    assert told_writers("dc2", [MAP], [MIRROR, more]) == [ALONE]


@pytest.mark.parametrize(
    ("more", "who"),
    [
        (replace(MIRROR, principal="User:app"), "User:app, User:mirror"),
        (replace(MIRROR, principal="User:*"), "User:*, User:mirror"),
        (replace(MIRROR, principal="User:app", name="*"), "User:app, User:mirror"),
        (
            replace(MIRROR, principal="User:app", name="dc1", pattern=PREFIXED),
            "User:app, User:mirror",
        ),
        (replace(MIRROR, principal="User:app", operation=ALL_OPERATIONS), "User:app, User:mirror"),
    ],
)
def test_everybody_else_who_may_write_a_map_is_warned_of(more: Right, who: str) -> None:
    assert told_writers("dc2", [MAP], [MIRROR, more]) == [
        f"warning: {MAP} on dc2 may be written by {who}, and by super users"
    ]


def test_a_denied_right_is_none() -> None:
    app = replace(MIRROR, principal="User:app")
    assert told_writers("dc2", [MAP], [MIRROR, app, replace(app, permission=DENY)]) == [ALONE]
    nobody = [MIRROR, replace(MIRROR, principal="User:*", permission=DENY)]
    assert told_writers("dc2", [MAP], nobody) == [
        f"{MAP} on dc2 may be written by nobody by rights, and by super users"
    ]


async def test_unbelieved_records_are_named_with_offset_and_producer_id() -> None:
    async with two_fakes() as (_, dc2, links):
        log = dc2.create_topic(MAP, 0).partitions[0]
        key, value = piece_start("t", 0, source_start=40, place=Place(20))
        log.batches, log.end = [build_batch([Record(0, 0, key, value)])], 1
        flow = replace(CONFIG, topics=ANYTHING)
        lines = await internal_topics(flow, links, writers_of(MemoryWriters(is_strict=True)))
    assert lines[0].startswith("warning: everybody may write dc1.offset-map.internal, ")
    assert lines[-1].startswith(
        f"warning: {MAP}: not believed, as their producers are not registered (1 records): 1 of"
        " producer id -1 (a plain producer), from offset 0 on. `mirror check` says"
    )
