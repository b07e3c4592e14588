"""The demo's consumer: one member of the group, which checks and writes down every record."""

import argparse
import logging
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

from confluent_kafka import KafkaException, Message

from demo.data_set import require_intact
from demo.ledger import Commit, Delivery, LedgerWriter
from demo.stack import GROUP, TOPIC
from failover.client import SiteConsumer
from runtime.configuration.config import load
from runtime.process.logs import configure

_LOG = logging.getLogger(__name__)

BATCH: Final = 500
COMMIT_INTERVAL_S: Final = 0.5


class Board:
    """The application: its ledger of deliveries and of the commits that were acknowledged."""

    def __init__(self, deliveries: Path, commits: Path) -> None:
        self._deliveries = LedgerWriter(deliveries)
        self._commits = LedgerWriter(commits)
        self._dirty = False
        self._committed_at = time.monotonic()
        self.count = 0

    def take(self, messages: list[Message], site: str) -> None:
        """Check and write down what was delivered; raises RecordAltered."""
        at_ns = time.monotonic_ns()
        for message in messages:
            key, value = message.key(), message.value()
            number = require_intact(key, value)
            assert key is not None, "an intact record has a key"
            delivery = Delivery(
                at_ns=at_ns,
                site=site,
                partition=message.partition() or 0,
                offset=message.offset() or 0,
                key=key.decode("ascii"),
                number=number,
            )
            self._deliveries.deliver(delivery)
        self.count += len(messages)
        self._dirty = self._dirty or bool(messages)

    def commit_if_due(self, consumer: SiteConsumer) -> None:
        """Commit twice a second what was delivered."""
        if self._dirty and time.monotonic() - self._committed_at >= COMMIT_INTERVAL_S:
            self.commit(consumer)

    def commit(self, consumer: SiteConsumer) -> None:
        """Write the ledger out, commit, then write the acknowledged positions down.

        A commit that its site does not acknowledge is not written down; the records stay
        uncommitted until the next one.
        """
        self._deliveries.flush()
        self._committed_at = time.monotonic()
        if not self._dirty or consumer.is_between_sites:
            return
        site = consumer.site
        try:
            acknowledged = consumer.commit(asynchronous=False) or ()
        except KafkaException as error:
            _LOG.warning("%s did not acknowledge a commit: %s", site, error)
            return
        for partition in acknowledged:
            self._commits.commit(
                Commit(site=site, partition=partition.partition, offset=partition.offset)
            )
        self._commits.flush()
        self._dirty = False

    def close(self) -> None:
        """Close both ledgers."""
        self._deliveries.close()
        self._commits.close()


def follow(arguments: argparse.Namespace) -> int:
    """Consume until SIGTERM."""
    board = Board(arguments.deliveries, arguments.commits)
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    consumer = SiteConsumer(
        load(arguments.config),
        group_id=GROUP,
        topics=[TOPIC],
        consumer_config={"enable.auto.commit": False, "auto.offset.reset": "earliest"},
        on_revoke=lambda consumer, _partitions: board.commit(consumer),
    )
    with consumer:
        while not stopping:
            board.take(consumer.consume(BATCH, timeout=0.1), consumer.site)
            board.commit_if_due(consumer)
        board.commit(consumer)
    board.close()
    _LOG.info("%d records delivered", board.count)
    return 0


def main() -> int:
    """Run `python -m demo.consumer`."""
    parser = argparse.ArgumentParser(prog="demo.consumer", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--deliveries", type=Path, required=True)
    parser.add_argument("--commits", type=Path, required=True)
    configure("consumer")
    return follow(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
