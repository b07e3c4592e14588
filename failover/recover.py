"""`failover recover`: restore a witness that has lost its memory from what both clusters carry.

It shows what it found first and writes with `--write` only, under the controller's lease.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import uuid4

from failover.journal.journal import turn_back
from failover.journal.journals import read_journals
from failover.journal.lease import Lease, hold_lease
from failover.journal.steps import PromotionState
from failover.journal.store import WitnessStore
from failover.sites.unknown_writers import (
    CannotRecover,
    adopt_maps,
    restore_writers,
    told_writers,
)
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import ActiveSite, SetTopics, WitnessPaths
from runtime.coordination.zookeeper import Create, NoNode, Operation, SetData, ZooKeeper
from runtime.pair.evidence import PairSeen
from runtime.pair.evidence_number import take_number
from runtime.pair.opening import (
    find_garbled,
    look_at_pair,
    make_shared,
    open_clusters,
    renew_evidence,
)
from runtime.pair.recovery import (
    CannotRestore,
    NothingToRestore,
    Recovery,
    Restore,
    decide_recovery,
)
from runtime.set_option import set_option
from wire.net import Cluster

CHANGED: Final = (
    "the pair is not as it was shown any more, and nothing was written: another controller was at"
    " work meanwhile; run `failover recover{of_set}` again"
)


async def recover(
    configuration: Configuration,
    *,
    active: str | None,
    replaced: Collection[str],
    write: bool,
    show: Callable[[str], None],
    believes_maps: bool = False,
) -> None:
    """Show what was found, and what was, or would be, written.

    Raises CannotRecover, LeaseHeld, LeaseLost, WitnessGarbled and ZooKeeperFault.
    """
    coordination = configuration.coordination
    async with (
        open_witness(coordination) as zookeeper,
        open_clusters(configuration) as clusters,
    ):
        paths = coordination.paths
        garbled = await find_garbled(zookeeper, paths)
        for why in garbled.values():
            show(f"garbled     {why}")
        seen = await look_at_pair(configuration, zookeeper, clusters, without=garbled)
        for line in describe_seen(seen):
            show(line)
        decide = partial(decide_recovery, active=active, replaced=replaced)
        match decide(seen):
            case CannotRestore(reason):
                raise CannotRecover(reason)
            case NothingToRestore(reason) if paths.active in garbled:
                raise CannotRecover(f"{paths.active} is garbled, and {reason}: write it by hand")
            case NothingToRestore() if garbled and write:
                async with hold_lease(
                    zookeeper, paths.lease, wait_ms=2 * coordination.session_timeout_ms
                ) as lease:
                    await lease.act(lambda: _delete(zookeeper, garbled))
                show(f"deleted     {', '.join(garbled)}: it is made anew by `failover serve`")
            case NothingToRestore() if garbled:
                show(f"to delete   {', '.join(garbled)}")
                show("nothing was changed: --write does")
            case NothingToRestore(reason):
                show(reason)
                await restore_writers(
                    configuration,
                    zookeeper,
                    clusters,
                    show,
                    write=write,
                    believes_maps=believes_maps,
                )
            case Restore() as restore if write:
                failed = await _write(configuration, zookeeper, clusters, restore, garbled, decide)
                await _tell(configuration, clusters, restore, failed, show)
            case Restore() as restore:
                show(f"to write    {_says(restore.active)}")
                show("nothing was changed: --write does")


async def _write(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    restore: Restore,
    garbled: Collection[str],
    decide: Callable[[PairSeen], Recovery],
) -> Mapping[str, str]:
    """Write the witness first: evidence of what it does not say would contradict it.

    Return by site why it has no new evidence. Raises CannotRecover where `decide` says otherwise by
    now: a promotion may have had the lease until then.
    """
    coordination = configuration.coordination
    paths = coordination.paths
    look = partial(look_at_pair, configuration, zookeeper, clusters)
    wait_ms = 2 * coordination.session_timeout_ms
    async with hold_lease(zookeeper, paths.lease, wait_ms=wait_ms) as lease:
        if decide(await lease.act(partial(look, without=garbled))) != restore:
            raise CannotRecover(CHANGED.format(of_set=set_option(paths.topic_set)))
        await _end_unfinished(zookeeper, paths, lease)
        number = {*garbled} & {paths.evidence_number}  # the others are written over
        await lease.act(lambda: _delete(zookeeper, number))
        await lease.act(lambda: restore_witness(zookeeper, configuration, restore))
        restored = await look()
        answering = [name for name, site in restored.sites.items() if site.fault is None]
        return await lease.act(lambda: renew_evidence(configuration, clusters, restored, answering))


async def _tell(
    configuration: Configuration,
    clusters: Mapping[str, Cluster],
    restore: Restore,
    failed: Mapping[str, str],
    show: Callable[[str], None],
) -> None:
    show(f"written     {_says(restore.active)}")
    of_set = set_option(configuration.topic_set)
    for flow in configuration.flows:
        topic = map_topic_name(flow.source)
        show(
            f"{flow.target:<11} {topic}: all that it holds at the next start of the mirror is"
            " believed, whoever wrote it; compare it with both logs if somebody else may write"
            f" there: `mirror check{of_set}`, `spark-audit run{of_set}`."
            f" {await told_writers(clusters, flow)}"
        )
    show(
        "history     the clusters carry no journals of earlier promotions, rehearsals, pauses and"
        " restarts: what the witness has lost of them stays lost"
    )
    for name, why in sorted(failed.items()):
        show(f"{name} has no new evidence: {why}; `failover serve` writes it")


async def _delete(zookeeper: ZooKeeper, paths: Collection[str]) -> None:
    """Delete nodes that are not understood; what they should say is known."""
    for path in paths:
        with suppress(NoNode):
            await zookeeper.delete(path)


def _says(active: ActiveSite) -> str:
    return f"active {active.site}, epoch {active.epoch}"


async def _end_unfinished(zookeeper: ZooKeeper, paths: WitnessPaths, lease: Lease) -> None:
    """End what the witness remembers of promotions that were under way."""
    reason = "the witness was restored from the evidence of the clusters"
    for journal in await lease.act(lambda: read_journals(zookeeper, paths)):
        if journal.state is PromotionState.RUNNING:
            store = WitnessStore(zookeeper, paths, lease, journal.epoch)
            ended = turn_back(await store.take_over(), reason)
            await store.save(replace(ended, state=PromotionState.ROLLED_BACK))


async def restore_witness(
    zookeeper: ZooKeeper, configuration: Configuration, wanted: Restore
) -> None:
    """Make the witness say this.

    Flows are told nothing: each runs, or rests, by which site is active. May be repeated.
    """
    paths = configuration.coordination.paths
    for flow in configuration.flows:
        for path in (
            paths.command(flow.source, flow.target),
            paths.acknowledged(flow.source, flow.target),
        ):
            with suppress(NoNode):
                await zookeeper.delete(path)
    await zookeeper.ensure(paths.root)
    writes: list[Operation] = []
    # First: the witness may not say anew what an older one has said, with the number of that one.
    await take_number(zookeeper, paths, above=wanted.number)
    pair = wanted.pair if wanted.pair.pair else replace(wanted.pair, pair=uuid4().hex)
    nodes = {paths.pair: pair.encode(), paths.active: wanted.active.encode()}
    if paths != paths.of_pair:
        topics = configuration.whole.sets.topics_of(str(configuration.topic_set))
        nodes[paths.patterns] = SetTopics(topics=topics).encode()
    for path, data in nodes.items():
        node = await zookeeper.get(path)
        writes.append(
            Create(path=path, data=data)
            if node is None
            else SetData(path=path, data=data, version=node.version)
        )
    # Before the pair: once it is there, everybody acts, and nobody comes back to maps left unsaid.
    await adopt_maps(zookeeper, paths, configuration.flows)
    await zookeeper.transaction(writes)
    await make_shared(zookeeper, paths)


def describe_seen(seen: PairSeen) -> Iterator[str]:
    """Yield what the witness and each cluster say."""
    active = seen.active
    number = f" (evidence number {seen.number})"
    yield f"witness     {'nothing' if active is None else _says(active) + number}"
    for name, site in sorted(seen.sites.items()):
        if site.fault is not None:
            yield f"{name:<11} does not tell: {site.fault}"
            continue
        evidence = "no evidence" if site.evidence is None else site.evidence.describe()
        number = "" if site.evidence is None else f"evidence number {site.evidence.number}, "
        yield f"{name:<11} {evidence} ({number}cluster id {site.cluster_id or 'not told'})"
