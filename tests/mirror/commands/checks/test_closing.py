"""What `mirror check` says of a site that could not be closed for writes."""

import re
from dataclasses import replace

from mirror.commands.checks.closing import closing
from runtime.configuration.flow_section import PatternSet
from tests.doubles.fake_rights import FakeRights, everybodys
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode
from wire.net.rights import ALLOW, READ


async def test_a_site_without_an_authorizer_or_a_right_to_look_cannot_be_closed() -> None:
    async with two_fakes() as (dc1, dc2, links):
        FakeRights(dc1).error = ErrorCode.SECURITY_DISABLED
        FakeRights(dc2).error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        first, second = await closing(CONFIG, links, ["orders"])
        assert not await closing(replace(CONFIG, is_active_active=True), links, ["orders"])
    assert first == (
        "warning: dc1 cannot be closed for writes: it has no write fence, and no authorizer"
    )
    assert second.startswith("warning: dc2 cannot be closed for writes: it has no write fence, and")


async def test_a_site_where_topics_can_be_made_behind_the_fence_is_named() -> None:
    async with two_fakes() as (dc1, dc2, links):
        FakeRights(dc1, *everybodys(["orders"], READ, ALLOW))
        dc2.create_topic("orders", 0)
        target = FakeRights(dc2, *everybodys(["orders"], READ, ALLOW))
        target.settings = {"allow.everyone.if.no.acl.found": "true"}
        orders = PatternSet(include=(re.compile("orders.*"),), exclude=())
        config = replace(CONFIG, topics=orders)
        [line] = await closing(config, links, ["orders"])
        target.settings = {"allow.everyone.if.no.acl.found": "false"}
        assert not await closing(config, links, ["orders"])
    assert line.startswith("warning: topics can be made on dc2 while it is closed: no ACL of oth")
