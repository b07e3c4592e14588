"""Which entries would shut the mirror out of the target, and how a super user is known."""

from dataclasses import replace

import pytest

from runtime.rights.own import passes, shuts_us_out, telling_topic, withheld_words
from wire.acls import Operation, ResourceType
from wire.net.rights import ALLOW, DENY, PREFIXED, Right

NOBODY_WRITES = Right(
    name="t", principal="User:*", host="*", operation=Operation.WRITE, permission=DENY
)


@pytest.mark.parametrize(
    ("changed", "does"),
    [
        ({}, True),
        ({"operation": Operation.ALL}, True),
        ({"operation": Operation.DESCRIBE}, True),
        ({"name": "t-", "pattern": PREFIXED}, True),
        ({"kind": ResourceType.GROUP, "operation": Operation.READ}, True),
        ({"kind": ResourceType.CLUSTER, "operation": Operation.ALTER}, True),
        ({"operation": Operation.DELETE}, True),
        ({"kind": ResourceType.GROUP, "operation": Operation.DELETE}, False),
        ({"kind": ResourceType.CLUSTER, "operation": Operation.IDEMPOTENT_WRITE}, False),
        ({"kind": ResourceType.TRANSACTIONAL_ID}, False),
        ({"principal": "User:app"}, False),
        ({"host": "10.0.0.1"}, False),
        ({"permission": ALLOW}, False),
        ({"operation": 99}, False),
    ],
)
def test_a_deny_of_everybody_shuts_us_out_of_what_the_mirror_does(
    changed: dict[str, object], does: bool
) -> None:
    assert shuts_us_out(replace(NOBODY_WRITES, **changed)) == does  # type: ignore[arg-type]


def test_a_topic_of_the_target_tells_whether_we_are_a_super_user() -> None:
    on_all = replace(NOBODY_WRITES, name="*", operation=Operation.ALL)
    of_app = replace(NOBODY_WRITES, principal="User:app")
    assert telling_topic([of_app, NOBODY_WRITES], ["t", "u"]) == ("t", NOBODY_WRITES)
    assert telling_topic([of_app, on_all], ["u"]) == ("u", on_all)
    assert telling_topic([of_app, NOBODY_WRITES], ["u"]) is None
    assert passes(NOBODY_WRITES, 1 << Operation.WRITE)
    assert not passes(NOBODY_WRITES, 1 << Operation.READ)
    assert passes(on_all, 1 << Operation.READ)
    assert not passes(NOBODY_WRITES, -(2**31)), "nothing is told"


def test_what_is_withheld_is_named_with_what_to_do() -> None:
    said = withheld_words(NOBODY_WRITES, "dc2")
    assert said.startswith("dc2 does not get the DENY of WRITE to User:* of topic t: ")
    assert "`super.users`" in said
