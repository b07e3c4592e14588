"""The demo's producer: replays the departures through the client that follows the active site."""

import argparse
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from types import FrameType
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from demo.data_set import Departure, departures
from demo.ledger import UNTOLD, Acknowledgement, LedgerWriter
from demo.stack import TOPIC
from failover.client import SiteProducer
from runtime.configuration.config import load
from runtime.process.logs import configure

_LOG = logging.getLogger(__name__)

PACE_S: Final = 0.01


class RecordRefused(RuntimeError):
    """The cluster refused a record for good."""


class AcknowledgedRecords:
    """Writes down which record was acknowledged where."""

    def __init__(self, ledger: LedgerWriter) -> None:
        self._ledger = ledger
        self.count = 0
        self.failure: str | None = None

    def of(self, number: int, site: Callable[[], str]) -> Callable[[Any, Message], None]:
        """Return the delivery callback of one record."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failure = f"record {number}: {error}"
                return
            self.count += 1
            offset = message.offset()
            self._ledger.acknowledge(
                Acknowledgement(
                    at_ns=time.monotonic_ns(),
                    site=site(),
                    partition=message.partition() or 0,
                    offset=UNTOLD if offset is None else offset,
                    number=number,
                )
            )

        return delivered


def paced(events: Iterator[Departure], rate: int) -> Iterator[Departure]:
    """Return the events at `rate` a second, in small steps; 0 means as fast as they are taken."""
    if not rate:
        yield from events
        return
    step = max(1, int(rate * PACE_S))
    started = time.monotonic()
    for count, event in enumerate(events):
        if count % step == 0:
            ahead_s = count / rate - (time.monotonic() - started)
            if ahead_s > 0:
                time.sleep(ahead_s)  # noqa: TID251 - an application of its own, without trio
        yield event


def replay(arguments: argparse.Namespace) -> int:
    """Produce every departure; returns 0 when each was acknowledged, else raises RecordRefused."""
    ledger = LedgerWriter(arguments.ledger)
    acknowledgements = AcknowledgedRecords(ledger)
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    rounds = repeat(None) if arguments.forever else repeat(None, 1)
    events = (event for _ in rounds for event in departures())
    produced = 0
    with SiteProducer(load(arguments.config)) as producer:
        for event in paced(events, arguments.rate):
            # Without a timestamp of its own: time retention goes by record timestamps, and records
            # stamped with these events' times (2013) would be deleted at the first check.
            producer.produce(
                TOPIC,
                key=event.key,
                value=event.value,
                on_delivery=acknowledgements.of(event.number, lambda: producer.site),
            )
            produced += 1
            if stopping or acknowledgements.failure:
                break
        producer.flush()
    ledger.close()
    if acknowledgements.failure:
        raise RecordRefused(acknowledgements.failure)
    untold = produced - acknowledgements.count
    if untold:
        raise RecordRefused(f"{untold} of {produced} records were neither acknowledged nor refused")
    _LOG.info("%d records acknowledged", acknowledgements.count)
    return 0


def main() -> int:
    """Run `python -m demo.producer`."""
    parser = argparse.ArgumentParser(prog="demo.producer", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--rate", type=int, default=0, help="records a second, 0 for no limit")
    parser.add_argument("--forever", action="store_true", help="begin again at the end")
    configure("producer")
    return replay(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
