"""Events that the demo's producer and consumers saw, written down as they happen, a line each.

The verdict is computed from these files and from nothing that the service itself says.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from wire.values import frozen

UNTOLD: Final = -1
"""In place of an offset."""


@frozen
class Delivery:
    """One record handed to the application, at `at_ns` on the machine's monotonic clock."""

    at_ns: int
    site: str
    partition: int
    offset: int
    key: str
    number: int


@frozen
class Acknowledgement:
    """One record that the cluster said it holds.

    Where is UNTOLD when librdkafka concluded it from the answer to a later batch.
    """

    at_ns: int
    site: str
    partition: int
    offset: int
    number: int


@frozen
class Commit:
    """One position of the group that a site acknowledged."""

    site: str
    partition: int
    offset: int


class LedgerWriter:
    """Appends lines; `flush` before anything that must not outlive them, such as a commit."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")

    def deliver(self, delivery: Delivery) -> None:
        """Write down one delivery."""
        self._file.write(
            f"{delivery.at_ns},{delivery.site},{delivery.partition},{delivery.offset},"
            f"{delivery.key},{delivery.number}\n"
        )

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Write down one acknowledgement."""
        self._file.write(
            f"{acknowledgement.at_ns},{acknowledgement.site},{acknowledgement.partition},"
            f"{acknowledgement.offset},{acknowledgement.number}\n"
        )

    def commit(self, commit: Commit) -> None:
        """Write down one acknowledged position."""
        self._file.write(f"{commit.site},{commit.partition},{commit.offset}\n")

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close."""
        self._file.close()


def read_deliveries(path: Path) -> Iterator[Delivery]:
    """Return the deliveries of one consumer in the order they were made."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            at_ns, site, partition, offset, key, number = line.rstrip("\n").split(",")
            yield Delivery(
                at_ns=int(at_ns),
                site=site,
                partition=int(partition),
                offset=int(offset),
                key=key,
                number=int(number),
            )


def read_acknowledgements(path: Path) -> Iterator[Acknowledgement]:
    """Return the acknowledgements of one producer in the order they came."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            at_ns, site, partition, offset, number = line.rstrip("\n").split(",")
            yield Acknowledgement(
                at_ns=int(at_ns),
                site=site,
                partition=int(partition),
                offset=int(offset),
                number=int(number),
            )


def read_commits(path: Path) -> Iterator[Commit]:
    """Return the acknowledged positions of one consumer in the order they were made."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            site, partition, offset = line.rstrip("\n").split(",")
            yield Commit(site=site, partition=int(partition), offset=int(offset))
