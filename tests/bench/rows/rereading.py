"""Groups that lag by so many records, the source lost: how much they read again on the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import trio

from offset_translation import checkpoint
from tests.bench.measure.figures import reread as records_again
from tests.bench.measure.ledger import Cell, Ledger, RunFailed
from tests.bench.measure.results import MM2_DEFAULT, MM2_TUNED, OURS, REREAD
from tests.bench.measure.rounds import all_at_once, repeat
from tests.bench.measure.workloads import KIB, MIB, Workload
from tests.bench.rows.catching_up import watch
from tests.bench.stage.clusters import Names, Stage
from tests.bench.stage.filling import fill
from tests.bench.stage.served import create_topic, ends
from wire.errors import ErrorCode
from wire.net import Cluster, open_cluster
from wire.net.operations import commit_group_offsets, fetch_group_offsets, read_partition
from wire.record_batch import iterate_records
from wire.topic_partition import TopicPartition

LAGS: Final = (0, 1_000, 10_000, 100_000)
TOPIC: Final = "bench-reread"
LOOK_S: Final = 0.25
SETTLES_S: Final[Mapping[str, float]] = {OURS: 30.0, MM2_TUNED: 90.0, MM2_DEFAULT: 150.0}
"""How long a system is waited for. MirrorMaker's defaults translate once in 60 s."""

Positions = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """What is mirrored, and how long MirrorMaker rests behind it.

    It writes what it holds back of its offset syncs when it commits, once in 60 s: until then it
    translates worse than it will at rest.
    """

    workload: Workload
    rests_s: float


MILLIONS: Final = Workload(
    record_bytes=100, batch_bytes=16 * KIB, partitions=4, data_bytes=400 * MIB
)
"""A million records in each partition."""
FULL: Final = Reread(workload=MILLIONS, rests_s=65.0)
QUICK: Final = Reread(workload=replace(MILLIONS, partitions=1, data_bytes=24 * MIB), rests_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One mirror between two clusters, and groups at given positions on the source."""

    stage: Stage
    system: str
    names: Names
    topic: str
    workload: Workload
    rests_s: float

    @property
    def topic_on_target(self) -> str:
        return self.names.topic_on_target(self.system, self.topic)


def lag_name(lag: int) -> str:
    """Return what the tables call it."""
    return f"group lag {lag:,}"


def run_rereading(
    stage: Stage, reread: Reread, systems: Sequence[str], runs: int, ledger: Ledger
) -> None:
    """Let groups fail over behind each system, at each lag; all systems are at it at once."""
    all_lags = [(lag_name(lag), REREAD) for lag in LAGS]

    def attempt(system: str, turn: int) -> bool:
        def run() -> Mapping[Cell, float]:
            found = _reread_after_failover(stage, system, reread, ledger)
            return {(lag_name(lag), REREAD): records for lag, records in found.items()}

        return ledger.try_run(system, turn, all_lags, run)

    with ledger.guard(systems, all_lags):
        repeat(runs, systems, all_lags, all_at_once(attempt, stage.clean), ledger)


def _reread_after_failover(
    stage: Stage, system: str, reread: Reread, ledger: Ledger
) -> dict[int, float]:
    """Return the records read again by lag: the mean over the partitions.

    The traffic since the last translation is not in it: the groups rest until the mirror has
    taken their positions over. Raises one of `ledger.FAULTS`. What it made stays on the clusters.
    """
    names = stage.next_names()
    topic = f"{TOPIC}-{names.source}"
    workload = reread.workload
    scene = Scene(
        stage=stage,
        system=system,
        names=names,
        topic=topic,
        workload=workload,
        rests_s=0.0 if system == OURS else reread.rests_s,
    )
    create_topic(stage.source, topic, workload.partitions)
    mirror = stage.mirror(system, names, [topic])
    # MirrorMaker learns of groups when it starts, and every ten minutes: they must be there.
    beginning = dict.fromkeys(LAGS, [0] * workload.partitions)
    ledger.run(_commit, scene, beginning)
    ledger.run(fill, stage.source, topic, workload)
    try:
        mirror.start()
        ledger.run(watch, stage.target, scene.topic_on_target, workload, mirror.pid)
        return ledger.run(_move_groups, scene)
    finally:
        mirror.kill()


async def _move_groups(scene: Scene) -> dict[int, float]:
    async with open_cluster(scene.stage.source.addresses, client_id="bench") as source:
        source_ends = await ends(source, scene.topic, scene.workload.partitions)
    positions = {lag: [max(0, end - lag) for end in source_ends] for lag in LAGS}
    await _commit(scene, positions)
    translated = await _wait_translated(scene, positions)
    # The topic was mirrored from its first record on and has no holes: right is "the same".
    return {
        lag: sum(
            records_again(position=position, translated=translated.get((group_of(lag), partition)))
            for partition, position in enumerate(each)
        )
        / len(each)
        for lag, each in positions.items()
    }


async def _wait_translated(scene: Scene, positions: Mapping[int, list[int]]) -> Positions:
    """Return where each group goes on, by group and partition, once they have all been moved.

    After the time in which the system should have moved them: what there is.
    """
    wanted = {
        (group_of(lag), partition): position
        for lag, each in positions.items()
        for partition, position in enumerate(each)
    }
    look = _group_positions if scene.system == OURS else _checkpoints
    found: Positions = {}
    began = trio.current_time()
    async with open_cluster(scene.stage.target.addresses, client_id="bench") as target:
        with trio.move_on_after(SETTLES_S[scene.system]):
            while True:
                found, is_settled = await look(scene, target, wanted)
                if is_settled and trio.current_time() >= began + scene.rests_s:
                    return found
                await trio.sleep(LOOK_S)
    return found


async def _group_positions(
    scene: Scene, target: Cluster, wanted: Positions
) -> tuple[Positions, bool]:
    """Return the groups' own positions on the target, and whether they are what they will be."""
    found: Positions = {}
    for group in {group for group, _ in wanted}:
        offsets = await fetch_group_offsets(target, group)
        for (topic, partition), position in offsets.items():
            if topic == scene.topic_on_target:
                found[group, partition] = position.offset
    return found, found == wanted


async def _checkpoints(scene: Scene, target: Cluster, wanted: Positions) -> tuple[Positions, bool]:
    """Return where MirrorMaker's checkpoints send the groups, and whether they are of now.

    That is what its clients translate by; with group sync on, the groups' positions are these.
    """
    topic = checkpoint.checkpoint_topic_name(scene.names.source)
    [end] = await ends(target, topic, 1)
    found: Positions = {}
    upstream: Positions = {}
    async for _, batch in read_partition(target, topic, 0, 0, end):
        for record in iterate_records(batch):
            if record.key is None or record.value is None:
                continue
            one = checkpoint.decode(record.key, record.value)
            if one.topic == scene.topic_on_target:
                found[one.group, one.partition] = one.downstream_offset
                upstream[one.group, one.partition] = one.upstream_offset
    return found, upstream == wanted


async def _commit(scene: Scene, positions: Mapping[int, list[int]]) -> None:
    async with open_cluster(scene.stage.source.addresses, client_id="bench") as source:
        for lag, each in positions.items():
            asked = {
                TopicPartition(scene.topic, partition): (position, "")
                for partition, position in enumerate(each)
            }
            answered = await commit_group_offsets(source, group_of(lag), asked)
            refused = set(answered.values()) - {ErrorCode.NONE}
            if refused:
                raise RunFailed(f"commit of {group_of(lag)}: {refused.pop().name}")


def group_of(lag: int) -> str:
    """Return the group's name."""
    return f"bench-lag-{lag}"
