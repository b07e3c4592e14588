"""One night's evidence of a site, taken beside its own cluster: what is new is read, and a part of
what is remembered, again."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import trio
from pyspark import SparkContext

from runtime.configuration.config import ClusterConfig, Configuration
from runtime.process.clock import now_ms
from runtime.set_option import set_option
from spark_audit.evidence.belief import (
    TAKE_ANEW,
    AskedLinks,
    Disbelief,
    considered,
    proven,
    wrong_cluster,
)
from spark_audit.evidence.epochs import ask_epochs
from spark_audit.evidence.links import NightNumbers
from spark_audit.evidence.remembered import RememberedSite, remembered
from spark_audit.evidence.rows import EvidenceUnusable, Night, Note
from spark_audit.evidence.store import load, save
from spark_audit.evidence.taking import (
    NOTHING_LEFT,
    LogTonight,
    corrupt_batches,
    forgotten,
    going_on,
    note_of,
    void_note,
    without_memory,
)
from spark_audit.scan.scan_plan import ScanTask, splits
from spark_audit.scan.scan_rows import ScannedLog, ScanRow
from spark_audit.session import SparkCluster, open_session
from spark_audit.snapshot.bounds import LogBounds
from spark_audit.snapshot.cluster_bounds import ClusterBounds, ask_bounds, open_site
from spark_audit.snapshot.side import Side
from spark_audit.spark_reader import SparkReader
from wire.net.security import PLAINTEXT
from wire.topic_partition import TopicPartition

DAY_MS: Final = 86_400_000
_NAME: Final = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class NightReport:
    """The growth of one night, in offsets, and why some logs were left out; `site` took it."""

    site: str
    night: str
    logs: int
    remembered: int
    read_again: int
    new: int
    problems: tuple[str, ...]
    begun: tuple[str, ...] = ()
    """Logs of which nothing that was remembered counts any more, and why."""


@dataclass(frozen=True, slots=True)
class WantedTopics:
    """The topics that any flow of the file moves to or from a site."""

    configuration: Configuration
    site: str

    def matches(self, topic: str) -> bool:
        """Return whether an audit may compare the topic."""
        return any(
            (self.site == flow.source and flow.moves(topic))
            or (self.site == flow.target and flow.brings(topic))
            for flow in self.configuration.flows
        )


def take_night(
    configuration: Configuration,
    site: str,
    cluster: SparkCluster = SparkCluster(),  # noqa: B008 - it is frozen
    *,
    is_anew: bool = False,
) -> NightReport:
    """Read what is new at a site and add it to its evidence; with `is_anew` read and keep all anew.

    Raises EvidenceUnusable for a site without a place for evidence or with evidence that is none
    of it, and CannotTell, JavaMissing or SparkFailed as an audit does.
    """
    config, path = _place(configuration, site)
    taken_ms = now_ms()
    name = datetime.fromtimestamp(taken_ms / 1_000, UTC).strftime(_NAME)
    found = trio.run(_bounds, config, WantedTopics(configuration, site))
    if found.cluster_id is None:
        raise EvidenceUnusable(f"{site}: its cluster has no id, by which evidence is known")
    audit = configuration.audit
    with open_session(
        cores=audit.cores, driver_memory=audit.driver_memory, cluster=cluster
    ) as spark:
        of_set = set_option(configuration.topic_set)
        told = remembered(None if is_anew else load(spark, path), path, of_set)
        if told.night is not None and told.night >= name:
            raise EvidenceUnusable(
                f"{path}: it has night {told.night} already, and by the clock it is {name}; if the "
                f"clock was wrong then, {TAKE_ANEW.format(site=site, of_set=of_set)}"
            )
        if (wrong := wrong_cluster(site, told, found.cluster_id)) is not None:
            raise EvidenceUnusable(wrong)
        turns = NightNumbers(
            since=taken_ms // DAY_MS if told.night is None else _day_of(told.night, path),
            tonight=taken_ms // DAY_MS,
            days=audit.reread_nights,
        )
        taking = _Taking(configuration, config, turns)
        report, notes = taking.take(spark, told, found, name)
        if notes or is_anew:
            night = Night(name=name, cluster=found.cluster_id, notes=tuple(notes))
            save(spark, path, night, is_anew=is_anew)
    return report


def _place(configuration: Configuration, site: str) -> tuple[ClusterConfig, str]:
    config = configuration.clusters.get(site)
    if config is None:
        named = ", ".join(configuration.clusters)
        raise EvidenceUnusable(f"{site} is none of the clusters of the file: {named}")
    path = configuration.audit.evidence.get(site)
    if path is None:
        raise EvidenceUnusable(f"audit.evidence has no place for the evidence of {site}")
    return config, path


def _day_of(night: str, path: str) -> int:
    """Return the day of a night, as a number since the epoch; raises EvidenceUnusable."""
    try:
        taken = datetime.strptime(night, _NAME).replace(tzinfo=UTC)
    except ValueError as error:
        raise EvidenceUnusable(f"{path}: no night of a site: {error}") from error
    return int(taken.timestamp() * 1_000) // DAY_MS


async def _bounds(config: ClusterConfig, topics: WantedTopics) -> ClusterBounds:
    async with open_site(config, topics) as site:
        return await ask_bounds(site)


@dataclass(frozen=True, slots=True)
class _Taking:
    """One night at one site."""

    configuration: Configuration
    config: ClusterConfig
    turns: NightNumbers

    def take(
        self, spark: SparkContext, told: RememberedSite, found: ClusterBounds, name: str
    ) -> tuple[NightReport, list[Note]]:
        """Return what the night found, and what it adds."""
        problems = list(found.untold.values())
        notes: list[Note] = []
        tonight: list[LogTonight] = []
        for one in self._tonight(told, found.logs):
            match one:
                case LogTonight():
                    tonight.append(one)
                case Note():
                    notes.append(one)
                    problems.append(one.rows[0].detail or "")
                case str():
                    problems.append(one)
        rows = self._read(spark, tonight)
        for log in tonight:
            problems += corrupt_batches(log.place, rows[log.place])
            note = note_of(log, rows[log.place])
            if isinstance(note, Disbelief):
                problems.append(note.why)
                if note.is_contradicted:
                    notes.append(void_note(log.place, log.now.topic_id, note.why))
            elif note is not None:
                notes.append(note)
        return NightReport(
            site=self.config.name,
            night=name,
            logs=len(tonight),
            remembered=sum(log.kept for log in tonight),
            read_again=sum(stop - start for log in tonight for start, stop in log.runs()),
            new=sum(stop - start for log in tonight for start, stop in log.new()),
            problems=tuple(sorted(problems)),
            begun=tuple(
                f"{log.place}: {log.begins_because}"
                for log in tonight
                if log.begins_because is not None
            ),
        ), notes

    def _tonight(
        self, told: RememberedSite, logs: Mapping[TopicPartition, LogBounds]
    ) -> Sequence[LogTonight | Note | str]:
        """Return how each log is read, what is void of it, or why it is left out."""
        site = self.config.name
        asked: dict[TopicPartition, AskedLinks] = {}
        found: list[LogTonight | Note | str] = []
        for place, now in sorted(logs.items()):
            log = told.logs.get(place)
            if now.topic_id.int == 0:
                found.append(f"{place}: brokers give topics no ids, by which evidence is known")
                continue
            why = forgotten(log, now)
            one = None if why else considered(site, log, now, now.start, now.stop)
            if isinstance(one, AskedLinks):
                asked[place] = one
            elif isinstance(one, Disbelief):
                found.append(f"{place}: {one.why}")
            elif not now.is_compacted or why is not None:
                if why is None and log is not None and len(log.links):
                    why = NOTHING_LEFT
                found.append(without_memory(place, now, why))
        answers = trio.run(ask_epochs, self.config, {at: one.epoch for at, one in asked.items()})
        for place, one in asked.items():
            links = proven(site, one, answers.get(place))
            if isinstance(links, Disbelief):
                why = f"{place}: {links.why}"
                found.append(
                    void_note(place, logs[place].topic_id, why) if links.is_contradicted else why
                )
            else:
                found.append(going_on(place, logs[place], links, self.turns))
        return found

    def _read(
        self, spark: SparkContext, tonight: Sequence[LogTonight]
    ) -> Mapping[TopicPartition, list[ScanRow]]:
        rows: defaultdict[TopicPartition, list[ScanRow]] = defaultdict(list)
        tasks = [task for log in tonight for task in self._tasks(log)]
        for batch in SparkReader(spark).scan(tasks).to_batches():
            columns = (
                batch.column(name).to_pylist() for name in ("topic", "partition", *ScanRow._fields)
            )
            for topic, partition, *values in zip(*columns, strict=True):
                rows[TopicPartition(topic, partition)].append(ScanRow(*values))
        return rows

    def _tasks(self, log: LogTonight) -> list[ScanTask]:
        is_secured = self.config.security != PLAINTEXT
        return [
            ScanTask(
                cluster=self.config.name,
                bootstrap=self.config.bootstrap,
                topic_id=log.now.topic_id,
                place=log.place,
                log=ScannedLog(
                    side=Side.SOURCE, topic=log.place.topic, partition=log.place.partition
                ),
                start=start,
                stop=stop,
                log_stop=end,
                starts_log=start == begin,
                configuration=str(self.configuration.file) if is_secured else "",
            )
            for begin, end in [*log.runs(), *log.new()]
            for start, stop in splits(begin, end)
        ]
