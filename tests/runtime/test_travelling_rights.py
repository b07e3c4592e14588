"""Which rights travel: MirrorMaker's downgrade as the default."""

import pytest

from runtime.configuration.flow_section import AclSync
from runtime.travelling_rights import rights_to_give
from wire.net.topic_rights import ALL_OPERATIONS, ALLOW, DENY, READ, WRITE, TopicRight

DESCRIBE = 8


def right(operation: int, permission: int = ALLOW, topic: str = "t") -> TopicRight:
    return TopicRight(
        topic=topic, principal="User:a", host="*", operation=operation, permission=permission
    )


@pytest.mark.parametrize(
    ("there", "downgraded", "identical"),
    [
        (right(READ), [right(READ)], [right(READ)]),
        (right(DESCRIBE), [right(DESCRIBE)], [right(DESCRIBE)]),
        (right(WRITE), [], [right(WRITE)]),
        (right(ALL_OPERATIONS), [right(READ)], [right(ALL_OPERATIONS)]),
        (right(WRITE, DENY), [right(WRITE, DENY)], [right(WRITE, DENY)]),
        (right(ALL_OPERATIONS, DENY), [right(ALL_OPERATIONS, DENY)], [right(ALL_OPERATIONS, DENY)]),
        (right(READ, topic="other"), [], []),
    ],
)
def test_each_kind_of_right_travels_by_the_rules(
    there: TopicRight, downgraded: list[TopicRight], identical: list[TopicRight]
) -> None:
    given = {sync: rights_to_give([there], [], mirrored={"t": "t"}, sync=sync) for sync in AclSync}
    assert given == {
        AclSync.OFF: [],
        AclSync.DOWNGRADED: downgraded,
        AclSync.IDENTICAL: identical,
    }


def test_what_the_target_has_is_not_given_again_and_nothing_is_taken_away() -> None:
    source = [right(READ), right(ALL_OPERATIONS), right(DESCRIBE)]
    target = [right(READ), right(WRITE)]
    lacking = rights_to_give(source, target, mirrored={"t": "t"}, sync=AclSync.DOWNGRADED)
    assert lacking == [right(DESCRIBE)]
