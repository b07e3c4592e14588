"""A target that lost its end is found also where nothing is written to it."""

import pytest

from mirror.topics.quiet_targets import LOOK_MS, QuietTargets
from tests.mirror.whole_flow import WholeFlow, batch_at, until, values, whole_flow

LOG = [batch_at(offset, b"a%d" % offset) for offset in range(10)]


async def all_mirrored(whole: WholeFlow) -> QuietTargets:
    """Wait for that, and look once."""
    await until(lambda: whole.partition.lag_records(0) == 0 and len(values(whole.target)) == 10)
    quiet = QuietTargets(whole.flow.interruptions, whole.discovery._links)
    await quiet.look(whole.flow.partitions.own, 0)
    assert whole.partition.is_flowing, "nothing was lost"
    return quiet


@pytest.mark.parametrize("is_doubted", [False, True])
async def test_what_a_quiet_target_lost_under_the_same_leader_is_mirrored_again(
    *, is_doubted: bool
) -> None:
    """All its brokers were away, and came back in the epoch of before."""
    async with whole_flow(LOG, 10, chunk_bytes=1_000_000) as whole:
        quiet = await all_mirrored(whole)
        whole.target.batches, whole.target.end = [], 0
        await quiet.look(whole.flow.partitions.own, LOOK_MS - 1)
        assert whole.partition.is_flowing, "the next look is not due"
        if is_doubted:
            quiet.doubt()
        await quiet.look(whole.flow.partitions.own, LOOK_MS - is_doubted)
        await until(lambda: values(whole.target) == values(whole.source))


async def test_a_target_that_does_not_tell_its_end_is_left_alone() -> None:
    async with whole_flow(LOG, 10, chunk_bytes=1_000_000) as whole:
        quiet = await all_mirrored(whole)
        whole.target.leader = -1
        await whole.discovery._links.target_admin.metadata(refresh=True)
        await quiet.look(whole.flow.partitions.own, LOOK_MS)
        assert whole.partition.is_flowing
