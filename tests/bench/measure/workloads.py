"""What is mirrored and served in a benchmark, and its parts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from wire.compression import Compression

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

RECORD_BYTES: Final = (100, KIB, 10 * KIB)
CODECS: Final = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
ONE_RECORD: Final = 0
"""The batch size that means: each record in a batch of its own."""
BATCH_BYTES: Final = (ONE_RECORD, 16 * KIB, 100 * KIB)
PARTITIONS: Final = (1, 12, 120)

DATA_BYTES: Final = 4 * GIB
"""What lies there to be mirrored. Starting and compiling, which count, take Java a dozen seconds of
processor time, however much that is."""
MOST_RECORDS: Final = 12_000_000
MOST_BATCHES: Final = 1_572_864
"""Where records or batches, not bytes, are what takes the time."""
FEWEST_BATCHES: Final = 4
"""Per partition, so that the middle of a run is not its end."""


class Part(Enum):
    """What `ONLY=` picks."""

    MIRROR = "mirror"
    BROKER = "broker"
    OFFSETS = "offsets"
    REPLICATED = "replicated"
    DRAIN = "drain"
    AUDIT = "audit"
    GROWTH = "audit-growth"
    FORWARD = "forward"


DEFAULT_PARTS: Final = (Part.MIRROR, Part.BROKER, Part.OFFSETS, Part.AUDIT)
"""What runs unless `ONLY=` picks something: the others take 10 minutes, 35, 5 and 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Records of one size in batches of one size, spread evenly; `data_bytes` of values in all."""

    record_bytes: int = KIB
    codec: Compression = Compression.NONE
    batch_bytes: int = 16 * KIB
    partitions: int = 12
    data_bytes: int = DATA_BYTES

    @property
    def name(self) -> str:
        """Return how tables call it; the amount of data is not part of it."""
        batch = "1 record" if self.batch_bytes == ONE_RECORD else size(self.batch_bytes)
        codec = self.codec.name.lower()
        return f"{size(self.record_bytes)}, {codec}, batch {batch}, {self.partitions}p"

    @property
    def topic(self) -> str:
        """Return a topic's name that says the same."""
        batch = self.batch_bytes or self.record_bytes
        codec = self.codec.name.lower()
        return f"bench-{self.record_bytes}-{codec}-{batch}-{self.partitions}"

    @property
    def records_per_batch(self) -> int:
        return max(1, self.batch_bytes // self.record_bytes)

    @property
    def batches_per_partition(self) -> int:
        wanted = self.data_bytes // (self.records_per_batch * self.record_bytes * self.partitions)
        return max(FEWEST_BATCHES, wanted)

    @property
    def records(self) -> int:
        """Return how many records there are in all partitions together."""
        return self.records_per_batch * self.batches_per_partition * self.partitions

    @property
    def value_bytes(self) -> int:
        """Return the bytes of all values before compression, which every figure counts in."""
        return self.records * self.record_bytes


BASE: Final = Workload()


def one_at_a_time(base: Workload = BASE) -> list[Workload]:
    """Return the base, and each workload that differs from it in one respect."""
    varied = [replace(base, record_bytes=value) for value in RECORD_BYTES]
    varied += [replace(base, codec=value) for value in CODECS]
    varied += [replace(base, batch_bytes=value) for value in BATCH_BYTES]
    varied += [replace(base, partitions=value) for value in PARTITIONS]
    others = [each for each in dict.fromkeys(varied) if each != base]
    return [base, *(fitted(each) for each in others)]


def fitted(workload: Workload) -> Workload:
    """Return it with less data where that would be too many records or batches."""
    batch_bytes = workload.records_per_batch * workload.record_bytes
    data_bytes = min(
        workload.data_bytes, MOST_RECORDS * workload.record_bytes, MOST_BATCHES * batch_bytes
    )
    return replace(workload, data_bytes=data_bytes)


def quick(base: Workload = BASE) -> list[Workload]:
    """Return what `QUICK=1` mirrors, and `AGAINST=REV`."""
    small = replace(base, data_bytes=GIB)
    return [
        small,
        replace(small, codec=Compression.LZ4),
        replace(small, codec=Compression.ZSTD),
        replace(small, batch_bytes=100 * KIB),
        replace(small, batch_bytes=ONE_RECORD),
        replace(small, partitions=120),
    ]


def size(count: int) -> str:
    """Return `100 B`, `16 KiB`."""
    return f"{count // KIB} KiB" if count >= KIB else f"{count} B"


def parse_parts(only: str | None) -> list[Part]:
    """Return the parts that `ONLY=` names, or the usual ones; ValueError names what is unknown."""
    if not only:
        return list(DEFAULT_PARTS)
    names = [name.strip() for name in only.split(",")]
    known = {part.value: part for part in Part}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"ONLY={only}: unknown part {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def stored_mb(workloads: Iterable[Workload]) -> int:
    """Return what brokers store at once: a workload twice, as another mirror of ours has a topic to
    itself, and three copies; of four mirrors one is done.

    What a round left is deleted before the next one has copied much.
    """
    return 5 * max(workload.value_bytes for workload in workloads) // MIB + 1000
