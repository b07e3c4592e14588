"""Find partitions whose mirrored end hangs on map records that are not believed.

    map     |--aaaaaaaa--|--bbbb--|     a: of writers that the witness knows     b: of others
    target  |--a's records--|--b's records--|

Somebody else may have written `b`, or the mirror: an old copy of the witness does not know who has
registered since. Nobody can tell from afar. So where `b` says otherwise than `a`, neither is taken
for the truth: it is named, and a person decides.
"""

from collections.abc import Collection, Mapping
from typing import Final

import trio

from failover.journal.execute import StepFailed
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import find_mirrored_ends
from failover.sites.site import SiteUnclear
from runtime.set_option import set_option
from wire.topic_partition import TopicPartition

ASKS_AFTER_S: Final = 3.0
"""A mirror that lags may only be late."""


def not_all_believed(topic_set: str | None) -> str:
    """Return why an end of a lost source is not known."""
    return (
        "records of the map are not believed;"
        f" `failover recover --believe-maps{set_option(topic_set)}` shows whose"
    )


async def find_unsure_ends(
    follower: MapFollower, reached: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, str]:
    """Return the partitions that are mirrored further if all of the map is believed, and why.

    `reached` has how far they are by what is believed; `follower` has been refreshed. Raises
    NetworkFault.
    """
    unbelieved, doubtful = follower.unbelieved, follower.doubtful(reached)
    if not doubtful:
        return {}
    try:
        all_of_it = await follower.as_if_all_were_believed()
    except SiteUnclear as unclear:
        return dict.fromkeys(doubtful, f"{unclear}; {unbelieved}")
    return {
        partition: f"{partition} is mirrored up to {reached[partition] or 0} by what is believed of"
        f" the map, and up to {further} by all of it: {unbelieved}"
        for partition in doubtful
        if (further := all_of_it.mirrored_end(partition) or 0) > (reached[partition] or 0)
    }


async def find_unsure_seals(
    follower: MapFollower, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the partitions of a lost source that all of the map would have sealed elsewhere.

    `follower` has been refreshed. Raises NetworkFault.
    """
    unbelieved, wanted = follower.unbelieved, follower.doubtful(partitions)
    if not wanted:
        return {}
    try:
        all_of_it = await follower.as_if_all_were_believed()
    except SiteUnclear as unclear:
        return {partition: f"{partition}: {unclear}; {unbelieved}" for partition in wanted}
    by_believed = await find_mirrored_ends(follower, wanted)
    by_all = await find_mirrored_ends(all_of_it, wanted)
    return {
        partition: f"{partition} would be sealed at {known.source_end} ({follower.target_name} at"
        f" {known.target_end}) by what is believed of the map, and at {other.source_end} (at"
        f" {other.target_end}) by all of it: {unbelieved}"
        for partition, known in sorted(by_believed.items())
        if (other := by_all[partition]) != known
    }


class UnbelievedWatch:
    """Refuses to wait for what is on the target already, if all of the map is believed."""

    def __init__(self, follower: MapFollower) -> None:
        """Begin to wait now."""
        self._follower = follower
        self._next_s = trio.current_time() + ASKS_AFTER_S

    async def require_none(self, lacking: Collection[TopicPartition]) -> None:
        """Raise StepFailed where a partition lacks nothing by all of the map; looks at intervals.

        Raises NetworkFault.
        """
        if trio.current_time() < self._next_s or not self._follower.unbelieved_records.count:
            return
        reached = {partition: self._follower.mirrored_end(partition) for partition in lacking}
        unsure = await find_unsure_ends(self._follower, reached)
        self._next_s = trio.current_time() + ASKS_AFTER_S
        if unsure:
            first = next(iter(unsure.values()))
            raise StepFailed(f"{first} ({len(unsure)} of {len(lacking)} partitions that lack any)")
