"""`.txnindex`: the transactions whose abort marker lies in a segment, in the markers' order.

    int16 version 0  int64 producer id  int64 first offset  int64 last offset (the marker's)
    int64 last stable offset when the marker was written

Kafka's TransactionIndex. There is no file where nothing was aborted. Unlike the other indexes it
cannot be told from the segment alone, so it is brought to the platter with the records.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from broker.log.markers import AbortedTransaction
from broker.log.open_file import OpenFile

_VERSION: Final = 0
_ENTRY: Final = Struct(">hqqqq")


class TxnIndexSearchResult(NamedTuple):
    """The aborted transactions of a range by one segment's index."""

    transactions: list[AbortedTransaction]
    is_complete: bool
    """Whether no later segment can know of more."""


class TransactionIndex:
    """One index file; read when it is first asked for. Raises OSError where the disk does."""

    __slots__ = ("_entries", "exists", "path")

    def __init__(self, path: Path, *, exists: bool | None = None) -> None:
        """Use the file; `exists` saves a look where the folder has been listed."""
        self.path = path
        self.exists = path.exists() if exists is None else exists
        self._entries: list[AbortedTransaction] | None = None

    def entries(self) -> Sequence[AbortedTransaction]:
        """Return all, in order of their markers. An entry half written is none."""
        if not self.exists:
            return ()
        if self._entries is None:
            data = self.path.read_bytes()
            whole = len(data) - len(data) % _ENTRY.size
            self._entries = [
                AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(data[:whole])
            ]
        return self._entries

    def fault(self, base_offset: int) -> str | None:
        """Return why it cannot be the index of the segment at that offset, None if it may be."""
        if not self.exists:
            return None
        data = self.path.read_bytes()
        if len(data) % _ENTRY.size:
            return "ends inside an entry"
        previous = base_offset - 1
        for version, _, first, last, _ in _ENTRY.iter_unpack(data):
            if version != _VERSION:
                return f"has an entry of version {version}"
            if last <= previous or first > last:
                return f"has a transaction from {first} to {last} in the wrong place"
            previous = last
        return None

    def append(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add transactions, each with its marker behind all others'."""
        added = list(transactions)
        if not added:
            return
        before = len(self.entries())
        data = b"".join(_ENTRY.pack(_VERSION, *one) for one in added)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(descriptor, before * _ENTRY.size)
            if os.pwrite(descriptor, data, before * _ENTRY.size) != len(data):
                raise OSError(f"{self.path.name}: an entry was written only in part")
        finally:
            os.close(descriptor)
        self.exists = True
        self._entries = [*(self._entries or ()), *added]

    def find(self, start_offset: int, stop_offset: int) -> TxnIndexSearchResult:
        """Return those that overlap the offsets from start (inclusive) to stop (exclusive)."""
        found: list[AbortedTransaction] = []
        for one in self.entries():
            if one.last_offset >= start_offset and one.first_offset < stop_offset:
                found.append(one)
            if one.last_stable_offset >= stop_offset:
                return TxnIndexSearchResult(found, is_complete=True)
        return TxnIndexSearchResult(found, is_complete=False)

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose marker lies at or behind `offset`."""
        kept = [one for one in self.entries() if one.last_offset < offset]
        if len(kept) == len(self.entries()):
            return
        os.truncate(self.path, len(kept) * _ENTRY.size)
        self._entries = kept

    def file(self) -> OpenFile | None:
        """Return the file to be brought to the platter, None where there is none."""
        return OpenFile(self.path, os.O_RDWR) if self.exists else None

    def rest(self) -> None:
        """Give back the memory; the next question reads the file again."""
        self._entries = None

    def delete(self) -> None:
        """Remove the file and forget the entries. Raises OSError."""
        self.path.unlink(missing_ok=True)
        self.exists = False
        self._entries = None
