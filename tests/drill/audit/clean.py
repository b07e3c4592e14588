"""Clean pairs: two sites whose mirror has kept everything, audited behind all that may befall them.

    load ─► retention, compaction ─► switch ─► failback ─► disaster, quarantine ─► failback
         ─► disaster, refill ─► failback ─► both sites active ─► prefixed names

Each audit runs while applications write. A finding, or a verdict of not knowing, is a fault.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from offset_translation.map_records import map_topic_name
from spark_audit.result.store import Result
from spark_audit.session import open_session
from tests.clusters import RunningCluster
from tests.commands import run_audit_command
from tests.drill.audit.load import (
    PARTITIONS,
    PLAIN,
    TOPICS,
    create_topics,
    loaded,
    write_keyed,
)
from tests.drill.cluster import DrillFailed
from tests.drill.failover.applications import Applications
from tests.drill.failover.console import Console
from tests.drill.failover.operator import Operator
from tests.drill.failover.pairs import bundled, secured
from tests.drill.failover.planning import End
from tests.drill.failover.stage import PATH, Stage
from tests.failover.two_sites import pause

BROKERS: Final = {
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
KEYED_RECORDS: Final = 150_000
LEVEL_S: Final = 120.0
FIRST_S: Final = 20.0
WARM_S: Final = 4.0
LOST: Final = ("--source-lost", "--accept-loss", "--force")
MAP: Final = map_topic_name("")
ACTIVE_ACTIVE: Final = "active_active: true"
STATUSES: Final = (0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One audit of a clean pair."""

    behind: str
    status: int
    compared: int
    says: Sequence[str]
    """The problem, and the first findings."""

    @property
    def is_right(self) -> bool:
        return self.status == 0 and self.compared > 0


@dataclass(slots=True, kw_only=True)
class CleanPairs:
    """The pair, and what was audited so far."""

    stage: Stage
    luck: Random
    tell: Callable[[str], None]
    audited: list[Audited] = field(default_factory=list)
    operator: Operator = field(init=False)

    def __post_init__(self) -> None:
        """Have an operator who sets aside what diverges."""
        applications = Applications(file=self.stage.applications, sites=self.stage.clients)
        self.operator = Operator(
            console=Console(stage=self.stage), applications=applications, end=End.QUARANTINE
        )

    def run(self) -> None:
        """Go through everything. Raises DrillFailed where a step does not come to its end."""
        create_topics(self.stage.clients["dc1"])
        self.audit("load")
        self._take_beginnings()
        write_keyed(self.stage.clients["dc1"], self.luck, KEYED_RECORDS)
        self.audit("retention and compaction")
        self._switch("dc2")
        self.audit("a planned switch")
        self._switch("dc1")
        self.audit("a failback")
        self._lose("dc1", until=self._set_aside)
        self.audit("a disaster and a quarantine")
        self._switch("dc1")
        self.audit("the failback behind it")
        self._lose("dc1", until=self._refill)
        self.audit("a refill")
        self._switch("dc1")
        self.audit("the failback behind the refill")
        self._rewrite(("topics:", f"{ACTIVE_ACTIVE}\n    topics:"))
        self._wait_open()
        self.audit("both sites active", "dc1", "dc2")
        self._go_on_prefixed()
        self.audit("prefixed names", "dc1", "dc2")
        self.audit("evidence of prefixed names", "dc1", "dc2", with_evidence=True)

    # --- audits ---------------------------------------------------------------------------------

    def audit(self, behind: str, *busy: str, with_evidence: bool = False) -> None:
        """Audit while applications work at the active site, or at these."""
        busy = busy or (self.operator.active,)
        with self._working(busy):
            pause(WARM_S)
            if with_evidence:
                for site in self.stage.sites:
                    taken = run_audit_command("digest", site, str(self.stage.file))
                    if taken.returncode != 0:
                        raise DrillFailed(f"digest {site}: {taken.stdout}{taken.stderr}")
            # A result of its own: what earlier audits saw is not to excuse anything.
            output = self.stage.folder / "audits" / behind.replace(" ", "-")
            done = run_audit_command("run", str(self.stage.file), "--output", str(output))
        if done.returncode not in STATUSES or not output.is_dir():
            raise DrillFailed(f"the audit behind {behind}: {done.stdout}{done.stderr}")
        result = Result(output)
        verdict = json.loads(result.verdict_text())
        says = [str(verdict["problem"])] if verdict["problem"] else []
        says += [str(one) for one in result.findings()[:8]]
        says += [one for flow in verdict["flows"] for one in _beside(flow)]
        found = Audited(
            behind=behind,
            status=done.returncode,
            compared=sum(verdict["records_compared"].values()),
            says=says,
        )
        self.audited.append(found)
        word = "clean" if found.is_right else f"status {found.status}"
        self.tell(f"  behind {behind}: {found.compared:,} records compared, {word}")
        for one in found.says:
            self.tell(f"    {one}")

    @contextmanager
    def _working(self, sites: Sequence[str]) -> Iterator[None]:
        with ExitStack() as working:
            for site in sites:
                whose = site if len(sites) > 1 else ""
                load = loaded(self.stage.clients[site], f"{self.luck.random()}", whose)
                working.enter_context(load)
            yield

    # --- what befalls them ----------------------------------------------------------------------

    def _take_beginnings(self) -> None:
        """Delete records before an offset: other ones on each site."""
        self._wait_level()
        for share, site in ((3, "dc1"), (2, "dc2")):
            admin = AdminClient({**self.stage.clients[site], "log_level": 0})
            reader = Consumer({**self.stage.clients[site], "group.id": "drill", "log_level": 0})
            places = [TopicPartition(PLAIN, number) for number in range(PARTITIONS)]
            cuts = [
                TopicPartition(one.topic, one.partition, end // share)
                for one in places
                for _, end in [reader.get_watermark_offsets(one, FIRST_S)]
            ]
            reader.close()
            for cut in admin.delete_records(cuts).values():
                cut.result(FIRST_S)

    def _switch(self, new: str) -> None:
        self._wait_level()
        self._promote(new)
        self._wait_level()

    def _promote(self, new: str, *how: str) -> None:
        command = ["promote", new, *how]
        self.operator.console.run(*command)
        failed = self.operator.promote(command, new)
        if failed is not None:
            raise DrillFailed(f"{' '.join(command)}: {failed.text}")

    def _lose(self, site: str, *, until: Callable[[str], None]) -> None:
        """Kill a site with records that nobody mirrored, and have the other one take over."""
        self.stage.mirror.end()
        write_keyed(self.stage.clients[site], self.luck, 500)
        self.stage.sites[site].kill()
        self.stage.mirror.ensure()
        self._promote(self.operator.idle, *LOST)
        with self._working([self.operator.active]):
            pause(WARM_S)
        until(site)
        self._wait_level()

    def _set_aside(self, site: str) -> None:
        self.stage.bring_site_back(site)
        deadline = monotonic() + LEVEL_S
        while not self.operator.decide():
            if monotonic() > deadline:
                raise DrillFailed(f"not decided: {self.operator.console.said[-1].text}")
            pause(1.0)

    def _refill(self, site: str) -> None:
        """Have the site come back with nothing."""
        cluster = self.stage.sites[site]
        assert isinstance(cluster, RunningCluster), "the pair is of bundled brokers"
        self.stage.mirror.end()
        self.stage.guard.end()
        shutil.rmtree(cluster.data)
        cluster.start()
        said = self.stage.run("refill", site, "--write", program="mirror.cli")
        if said.status != 0:
            raise DrillFailed(f"mirror refill {site}: {said.text}")
        self.stage.mirror.ensure()
        self.stage.guard.ensure()

    def _rewrite(
        self, *changes: tuple[str, str], more: str = "", begins_anew: bool = False
    ) -> None:
        """Change the file, and begin mirror and `failover serve` anew with it."""
        text = self.stage.file.read_text()
        for old, new in changes:
            assert old in text, f"the file is as the drill wrote it, with {old}"
            text = text.replace(old, new)
        daemons = (self.stage.mirror, self.stage.guard)
        for daemon in daemons:
            daemon.end()
        if begins_anew:
            self._delete_maps()
        self.stage.file.write_text(text + more)
        for daemon in daemons:
            daemon.ensure()

    def _go_on_prefixed(self) -> None:
        """Go on under prefixed names, with a path of their own in the witness."""
        folder = self.stage.folder / "evidence"
        evidence = ", ".join(f"{site}: {folder / site}" for site in self.stage.sites)
        self._rewrite(
            (ACTIVE_ACTIVE, "names: prefixed"),
            (PATH, f"{PATH}-prefixed"),
            more=f"audit: {{evidence: {{{evidence}}}}}\n",
            begins_anew=True,
        )
        self._wait_level(*self.stage.sites)

    def _delete_maps(self) -> None:
        """Leave nothing of the old pair's maps to the new one, which does not know their writers.

        What they say of a topic is not so of its copies under other names.
        """
        for site in self.stage.sites:
            admin = AdminClient({**self.stage.clients[site], "log_level": 0})
            maps = [one for one in admin.list_topics().topics if one.endswith(MAP)]
            for deleted in admin.delete_topics(maps).values():
                deleted.result(FIRST_S)

    def _wait_level(self, *sources: str) -> None:
        """Wait until the mirror has brought everything from the active site, or from these."""
        deadline = monotonic() + LEVEL_S
        while behind := self._behind(sources or (self.operator.active,)):
            if monotonic() > deadline:
                raise DrillFailed(f"the mirror is not level: {behind}")
            pause(0.5)

    def _behind(self, sources: Sequence[str]) -> str:
        """Return what the mirror has still to bring; nothing if that is all."""
        said = self.stage.run("status", "--json", program="mirror.cli")
        text = said.text[said.text.find("{") :]
        if said.status != 0 or not text:
            return said.text
        partitions = {
            (flow["flow"].split("->")[0], one["topic"], one["partition"]): one
            for flow in json.loads(text)["flows"]
            for one in flow["partitions"]
        }
        for source, topic, number in product(sources, TOPICS, range(PARTITIONS)):
            one = partitions.get((source, topic, number))
            if one is None or one["state"] != "streaming" or one["lag_records"] != 0:
                return f"{topic}-{number} of {source}: {one}"
        return ""

    def _wait_open(self) -> None:
        """Wait until both sites take writes."""
        deadline = monotonic() + LEVEL_S
        for client in self.stage.clients.values():
            while not takes(client):
                if monotonic() > deadline:
                    raise DrillFailed(f"a site takes no writes: {client}")
                pause(0.5)


def takes(client: Mapping[str, Any]) -> bool:
    """Tell whether a site takes a record."""
    taken: list[bool] = []
    producer = Producer({**client, "message.timeout.ms": 2_000, "log_level": 0})
    # A KafkaError that is compared with None by == leaves an exception behind that the next call
    # of anything dies of.
    producer.produce(PLAIN, b"open?", on_delivery=lambda error, _: taken.append(error is None))
    producer.flush(5)
    return taken == [True]


def _beside(flow: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a verdict says beside records."""
    for name in ("untold", "unaudited"):
        yield from map(str, flow[name])
    yield from (str(one) for one in flow["settings"] if one[-1] is not None)
    yield from (str(one) for one in flow["rights"] if one[-1] is None)


def clean_table(audited: Sequence[Audited]) -> Iterator[str]:
    """Yield a line for each audit of a clean pair, and what it said."""
    yield f"{'a clean pair behind':<34}  compared  told"
    for one in audited:
        yield f"{one.behind:<34}  {one.compared:8,}  {'clean' if one.is_right else 'NOT CLEAN'}"
        if not one.is_right:
            yield from (f"  {line}" for line in one.says)


def audit_clean_pairs(
    folder: Path, seed: int, tell: Callable[[str], None], *, is_secured: bool = False
) -> list[Audited]:
    """Return what each audit said. Raises DrillFailed where a step does not come to its end."""
    folder.mkdir(parents=True)
    open_pair = secured if is_secured else bundled
    with (
        open_pair(folder, BROKERS) as stage,
        open_session(cores=2) as spark,
        pytest.MonkeyPatch.context() as patch,
    ):

        @contextmanager
        def there_is_one(**_: object) -> Iterator[object]:
            yield spark

        patch.setattr("spark_audit.run.open_session", there_is_one)
        patch.setattr("spark_audit.site_digest.open_session", there_is_one)
        pairs = CleanPairs(stage=stage, luck=Random(f"clean {seed}"), tell=tell)
        pairs.run()
    return pairs.audited
