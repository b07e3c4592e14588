"""Who is active, as an endpoint tells it: the witness's word, unless the clusters contradict it."""

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import trio

from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import ActiveSite, WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.pair.opening import PairContradicted, PairUnknown, open_clusters, require_pair
from runtime.process.fault_note import FaultNote
from runtime.process.tasks import background_tasks
from wire.net import Cluster

_LOG = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 10.0
"""So often the clusters are asked whether they contradict the witness."""
TRY_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The site that clients are shown, and of which epoch; or why they are shown none."""

    site: str | None
    epoch: int
    reason: str = ""


NOT_KNOWN: Final = Answer(None, -1, "the witness has not been read yet")


def next_answer(
    before: Answer, said: ActiveSite | None, doubt: str | None, known: Collection[str]
) -> Answer:
    """Return the answer where the witness has `said` this last, and the clusters have a `doubt`.

    An epoch only grows: a lower one comes from an old copy of the witness. `known` are the sites of
    the configuration.
    """
    if said is None:
        return before
    if doubt is not None:
        return Answer(None, before.epoch, doubt)
    if said.epoch < before.epoch:
        return Answer(
            None,
            before.epoch,
            f"the witness says epoch {said.epoch}, and has said {before.epoch} before: it is an "
            "old copy. `failover recover` shows what the clusters say",
        )
    if said.site not in known:
        return Answer(None, said.epoch, f"{said.site}, which is active, is not under `clusters`")
    return Answer(said.site, said.epoch)


class FollowedSite:
    """The present answer; `changed` is set, and made anew, whenever the site is another one."""

    def __init__(self) -> None:
        self.answer = NOT_KNOWN
        self.changed = trio.Event()
        self.is_witness_up = False

    def take(self, answer: Answer) -> None:
        """Answer this from now on."""
        before, self.answer = self.answer, answer
        if answer.site == before.site:
            return
        if answer.site is None:
            _LOG.error("no site is shown to clients: %s", answer.reason)
        else:
            _LOG.info("clients are shown %s, epoch %d", answer.site, answer.epoch)
        changed, self.changed = self.changed, trio.Event()
        changed.set()


class SiteFollower:
    """Follows the witness until cancelled; what is known stays while it cannot be read."""

    def __init__(self, configuration: Configuration, followed: FollowedSite) -> None:
        self._configuration = configuration
        self._followed = followed
        self._witness = FaultNote("the witness")
        self._pair = FaultNote("the pair")
        self._said: ActiveSite | None = None
        """The witness's last word."""
        self._doubt: str | None = NOT_KNOWN.reason
        """Why that is not believed."""
        self._spoken = trio.Event()

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
                    await self._hold_against_clusters(zookeeper, clusters)
            except (ZooKeeperFault, WitnessGarbled) as error:
                self._followed.is_witness_up = False
                self._witness.note(f"cannot be read, what is known stays: {error}")
            await trio.sleep(TRY_AGAIN_S)

    async def _listen(self, zookeeper: ZooKeeper) -> None:
        """Take the witness's word at once, also while a look at the clusters takes long."""
        path = WitnessPaths(root=self._configuration.coordination.path).active
        async with zookeeper.watch_data(path) as values:
            async for node in values:
                if node is not None:
                    with suppress(WitnessGarbled):  # the look at the clusters says so
                        self._said = ActiveSite.decode(node.data)
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
        answer = next_answer(self._followed.answer, self._said, self._doubt, known)
        self._followed.take(answer)
