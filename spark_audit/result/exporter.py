"""Serves the verdict that was stored last on metrics.audit_port, for scrapers without textfiles."""

from collections.abc import Iterator

import trio
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from runtime.configuration.config import Configuration
from runtime.pages.exposition import program_registry
from runtime.pages.metrics import serve_metrics
from runtime.process.signals import cancel_on_signal
from runtime.process.tasks import background_tasks
from spark_audit.result.prometheus import VerdictCollector
from spark_audit.result.store import Result, ResultUnusable
from spark_audit.result.verdict import decode


class StoredVerdict(Collector):
    """Reads the result folder at every scrape; no result, no metrics."""

    def __init__(self, result: Result) -> None:
        self._result = result

    @property
    def is_there(self) -> bool:
        """Say whether an audit has stored a verdict: then we are ready."""
        return any(True for _ in self.collect())

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the stored verdict, if there is a readable one."""
        try:
            verdict = decode(self._result.verdict_text())
        except (ResultUnusable, ValueError):
            return  # none yet, or another version's: absent metrics are what alerts look for
        yield from VerdictCollector(verdict).collect()


async def serve(configuration: Configuration) -> None:
    """Serve until SIGINT or SIGTERM. Raises AddressInUse."""
    stored = StoredVerdict(Result(configuration.audit.output))
    registry = program_registry("spark-audit")
    registry.register(stored)
    metrics = configuration.metrics
    with trio.CancelScope() as until_signal:
        async with background_tasks() as tasks:
            await tasks.start(cancel_on_signal, until_signal)
            await serve_metrics(
                metrics.host,
                metrics.audit_port,
                ready=lambda: stored.is_there,
                registry=registry,
                door=metrics.door,
            )
