"""Which rules of the source the target is not given, for whoever looks: mirror, check and plan."""

from dataclasses import replace
from typing import Any

import pytest

from runtime.configuration.flow_section import AclSync
from runtime.rights import withheld
from runtime.rights.closing import FenceNote, noting
from runtime.rights.creation import OF_CLUSTER
from runtime.rights.outlook import SiteRights
from runtime.rights.own import withheld_words
from runtime.rights.refused import Seen
from runtime.rights.withheld import find_withheld, staying
from tests.mirror.building import CONFIG
from tests.runtime.rights.building import ANYTHING, right
from wire.acls import Operation, ResourceType
from wire.net.rights import ALLOW, DENY, READ, WRITE, Right

CLUSTER = right(
    Operation.CREATE, DENY, name="kafka-cluster", kind=ResourceType.CLUSTER, principal="User:x"
)
NOBODY_READS = right(READ, DENY, principal="User:*")
SEEN = Seen(topics={"t": "t"}, groups=())


@pytest.mark.parametrize(
    ("rule", "sync", "stays"),
    [
        (CLUSTER, AclSync.DOWNGRADED, True),
        (CLUSTER, AclSync.IDENTICAL, False),
        (CLUSTER, AclSync.OFF, False),
        (replace(CLUSTER, permission=ALLOW), AclSync.DOWNGRADED, False),
        (replace(CLUSTER, operation=Operation.ALTER), AclSync.DOWNGRADED, False),
        (replace(CLUSTER, operation=Operation.ALL), AclSync.IDENTICAL, True),
        (right(READ, DENY), AclSync.DOWNGRADED, False),
    ],
)
def test_what_denies_applications_something_of_the_cluster_stays(
    rule: Right, sync: AclSync, stays: bool
) -> None:
    assert staying([rule], [], sync) == ({rule} if stays else set())
    assert not staying([rule], [rule], sync), "the target has it"


def test_what_a_fence_denies_is_no_rule_of_the_sources() -> None:
    fence = OF_CLUSTER, noting(OF_CLUSTER, FenceNote(client="mirror-a-b"))
    assert not staying(fence, (), AclSync.DOWNGRADED)


@pytest.mark.parametrize("is_super_user", [False, True])
async def test_a_rule_that_would_shut_us_out_is_found_unless_we_are_a_super_user(
    monkeypatch: pytest.MonkeyPatch, *, is_super_user: bool
) -> None:
    async def operations(_: object, topics: list[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 1 << WRITE if is_super_user else 1 << READ)

    monkeypatch.setattr(withheld, "topic_operations", operations)
    source = site("dc1", NOBODY_READS, CLUSTER, right(READ))
    target = site("dc2", right(WRITE, DENY, principal="User:*"))
    flow, cluster = replace(CONFIG, acls=AclSync.DOWNGRADED, groups=ANYTHING), Any
    found = await find_withheld(flow, SEEN, source, target, cluster)  # type: ignore[arg-type]
    assert set(found) == ({CLUSTER} if is_super_user else {CLUSTER, NOBODY_READS})


async def test_nothing_is_withheld_where_a_site_does_not_tell_its_rights() -> None:
    silent = SiteRights(site="dc1", entries="dc1 has no authorizer", users=frozenset())
    target = site("dc2", NOBODY_READS)
    assert await find_withheld(CONFIG, SEEN, silent, target, Any) == ()  # type: ignore[arg-type]


def test_each_rule_is_named_with_what_to_do() -> None:
    said = withheld_words(CLUSTER, "dc2")
    assert said.startswith("dc2 does not get the DENY of CREATE to User:x of cluster kafka-cluster")
    assert "`acls: identical`" in said
    assert "`super.users`" in withheld_words(NOBODY_READS, "dc2")


def site(name: str, *entries: Right) -> SiteRights:
    return SiteRights(site=name, entries=frozenset(entries), users=frozenset())
