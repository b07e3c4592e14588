"""Who is active, as an endpoint tells it: the witness's word, unless the clusters contradict it."""

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Final

import trio

from failover.bootstrap.arrivals import ClientArrivals, may_be_amid_switch
from failover.bootstrap.group_members import GroupMembers
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import ActiveSite, WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.pair.opening import PairContradicted, PairUnknown, open_clusters, require_pair
from runtime.process.clock import wall_ms
from runtime.process.fault_note import FaultNote
from runtime.process.tasks import background_tasks
from runtime.set_option import set_option
from wire.net import Cluster
from wire.values import frozen

_LOG = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 10.0
"""So often the clusters are asked whether they contradict the witness."""
TRY_AGAIN_S: Final = 1.0
ASK_TIMEOUT_S: Final = 2.0


@frozen(kw_only=False)
class ShownSite:
    """The site that clients are shown, and of which epoch; or why they are shown none."""

    site: str | None
    epoch: int
    reason: str = ""
    is_moving: bool = False
    """A planned promotion leads away from the site."""
    told: str | None = field(default=None, compare=False)
    """The site that the witness has named for this epoch, also while none is shown."""


NOT_KNOWN: Final = ShownSite(None, -1, "the witness has not been read yet")


def next_answer(
    before: ShownSite,
    said: ActiveSite | None,
    doubt: str | None,
    known: Collection[str],
    topic_set: str | None = None,
) -> ShownSite:
    """Return the answer where the witness has `said` this last, and the clusters have a `doubt`.

    An epoch only grows, and is of one site: another one comes from an old copy of the witness, or
    from somebody else. `known` are the sites of the configuration.
    """
    if said is None:
        return before
    if doubt is not None:
        return ShownSite(None, before.epoch, doubt, told=before.told)
    if said.epoch < before.epoch:
        return ShownSite(
            None,
            before.epoch,
            f"the witness says epoch {said.epoch}, and has said {before.epoch} before: it is an "
            f"old copy. `failover recover{set_option(topic_set)}` shows what the clusters say",
            told=before.told,
        )
    if said.epoch == before.epoch and before.told not in (None, said.site):
        return ShownSite(
            None,
            before.epoch,
            f"the witness says that {said.site} is active in epoch {said.epoch}, and has said "
            f"{before.told} before: a switch begins an epoch. `failover recover"
            f"{set_option(topic_set)}` shows what the clusters say; where it is right, start this "
            "program again",
            told=before.told,
        )
    if said.site not in known:
        reason = f"{said.site}, which is active, is not under `clusters`"
        return ShownSite(None, said.epoch, reason, told=said.site)
    return ShownSite(said.site, said.epoch, is_moving=said.moving_to is not None, told=said.site)


class FollowedSite:
    """The present answer.

    `changed` is set, and made anew, whenever the site is another one, or was left and is back.
    `news` is, whenever anything is new.
    """

    def __init__(self) -> None:
        self.answer = NOT_KNOWN
        self.arrivals = ClientArrivals()
        self._last_shown: tuple[str, int] | None = None
        """A site and an epoch."""
        self.changed = trio.Event()
        self.news = trio.Event()
        self.is_witness_up = False

    def take(self, answer: ShownSite) -> None:
        """Answer this from now on."""
        before, self.answer = self.answer, answer
        if answer != before:
            news, self.news = self.news, trio.Event()
            news.set()
        if (answer.site, answer.epoch) == (before.site, before.epoch):
            return
        if answer.site is None:
            _LOG.error("no site is shown to clients: %s", answer.reason)
        else:
            _LOG.info("clients are shown %s, epoch %d", answer.site, answer.epoch)
            if self._last_shown not in {None, (answer.site, answer.epoch)}:
                self.arrivals.begin(trio.current_time())
            self._last_shown = answer.site, answer.epoch
        changed, self.changed = self.changed, trio.Event()
        changed.set()


class SiteFollower:
    """Follows the witness until cancelled; what is known stays while it cannot be read."""

    def __init__(self, configuration: Configuration, followed: FollowedSite) -> None:
        self._configuration = configuration
        self._followed = followed
        self.members = GroupMembers()
        """Those of forwarded connections, for whom this session speaks to the witness."""
        self._witness = FaultNote("the witness")
        self._pair = FaultNote("the pair")
        self._said: ActiveSite | None = None
        """The witness's last word."""
        self._doubt: str | None = NOT_KNOWN.reason
        """Why that is not believed."""
        self._spoken = trio.Event()
        self._zookeeper: ZooKeeper | None = None
        """The present session with the witness."""

    async def run(self) -> None:
        """Follow, in a new session whenever one has failed."""
        while True:
            try:
                async with (
                    open_witness(self._configuration.coordination) as zookeeper,
                    open_clusters(self._configuration) as clusters,
                    background_tasks() as tasks,
                ):
                    tasks.start_soon(self._listen, zookeeper)
                    paths = self._configuration.coordination.paths
                    tasks.start_soon(self.members.keep_registered, zookeeper, paths)
                    self._zookeeper = zookeeper
                    await self._hold_against_clusters(zookeeper, clusters)
            except (ZooKeeperFault, WitnessGarbled) as error:
                self._zookeeper = None
                self._followed.is_witness_up = False
                self._witness.note(f"cannot be read, what is known stays: {error}")
            await trio.sleep(TRY_AGAIN_S)

    async def ask(self) -> ActiveSite | None:
        """Return what the witness says now; None if it does not say."""
        zookeeper = self._zookeeper
        if zookeeper is None:
            return None
        paths = self._configuration.coordination.paths
        with trio.move_on_after(ASK_TIMEOUT_S), suppress(ZooKeeperFault, WitnessGarbled):
            await zookeeper.sync()
            node = await zookeeper.get(paths.active)
            return None if node is None else paths.read_active(node.data)
        return None

    async def _listen(self, zookeeper: ZooKeeper) -> None:
        """Take the witness's word at once, also while a look at the clusters takes long."""
        paths = self._configuration.coordination.paths
        async with zookeeper.watch_data(paths.active) as values:
            async for node in values:
                if node is not None:
                    if self._said is None and may_be_amid_switch(node.modified_ms, wall_ms()):
                        self._followed.arrivals.begin(trio.current_time())
                    with suppress(WitnessGarbled):  # the look at the clusters says so
                        self._said = paths.read_active(node.data)
                self._tell()
                self._spoken.set()

    async def _hold_against_clusters(
        self, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster]
    ) -> None:
        """Doubt the witness where the clusters contradict it; raises what looking raises."""
        while True:
            self._spoken = trio.Event()
            try:
                await require_pair(self._configuration, zookeeper, clusters)
            except PairContradicted as error:
                self._doubt = str(error)
                self._pair.note(str(error))
            except PairUnknown as error:
                self._pair.note(str(error))
            else:
                self._doubt = None
                self._pair.clear()
            self._followed.is_witness_up = True
            self._witness.clear()
            self._tell()
            with trio.move_on_after(LOOK_AGAIN_S):
                await self._spoken.wait()

    def _tell(self) -> None:
        known = set(self._configuration.clusters)
        of_set = self._configuration.topic_set
        answer = next_answer(self._followed.answer, self._said, self._doubt, known, of_set)
        self._followed.take(answer)
