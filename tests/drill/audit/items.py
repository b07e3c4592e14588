"""Two logs under construction: records, holes and batches in the order in which they will lie.

Offsets come last: a fault is planted between records, and names the records that it is about.

    Strand (a side)  ─► drawn up (`laying`) ─► a log of batches, and the offset of each record
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
SIDES: Final = (0, 1)
"""The two sites."""


@dataclass(eq=False, slots=True, kw_only=True)
class Item:
    """One record at one place: a copy of it is another item."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    origin: int = 0
    """The site that wrote it."""

    @property
    def is_hot(self) -> bool:
        """Return whether its key comes again."""
        return (self.key or b"").startswith(b"hot")

    def copied(self) -> "Item":
        """Return an equal record."""
        return replace(self)

    @property
    def content(self) -> tuple[int, bytes | None, bytes | None, Headers]:
        """Return what makes two records equal."""
        return self.timestamp_ms, self.key, self.value, self.headers


@dataclass(eq=False, slots=True, kw_only=True)
class Whole:
    """Records that lie in one batch of their own."""

    items: tuple[Item, ...]
    is_damaged: bool = False
    """One bit of it flips on the disk."""
    is_aborted: bool = False
    """Its transaction is aborted behind it."""


@dataclass(eq=False, slots=True)
class Hole:
    """Offsets without a record; a cleaner took one that `origin` had written, if that is said."""

    offsets: int
    origin: int | None = None


Piece: TypeAlias = Item | Whole | Hole
SidedPiece: TypeAlias = tuple[int, Piece]
"""A side, and what lies there."""


@dataclass(slots=True, kw_only=True)
class Expected:
    """One finding that an audit must make: its kind and the places that it must name.

    `source` and `target` are as the direction of `origin` has them. `words` must be in its reason.
    """

    kind: str
    origin: int
    source: SidedPiece | None = None
    target: SidedPiece | None = None
    words: str = ""


@dataclass(slots=True, kw_only=True)
class Fault:
    """One planted fault: the ways in which it may be told, one of which must be."""

    name: str
    ways: list[list[Expected]]


@dataclass(slots=True, kw_only=True)
class Writing:
    """One partition of both sites while it is written."""

    luck: Random
    now_ms: int
    is_keyed: bool = False
    """Keys come again, as on compacted topics."""
    both_ways: bool = False
    hot_keys: int = 9
    hot_share: float = 0.3
    """So many keys come again, and so large a share of the records is theirs."""
    sides: tuple[list[Piece], list[Piece]] = field(default_factory=lambda: ([], []))
    faults: list[Fault] = field(default_factory=list)
    _written: int = 0

    def item(self, origin: int, *, key: bytes | None = None) -> Item:
        """Return a new record like none before."""
        self._written += 1
        number = self._written
        luck = self.luck
        name = key if key is not None else f"u{number}".encode()
        padding = luck.randbytes(luck.choice((4, 30, 120)))
        return Item(
            timestamp_ms=self.now_ms + number,
            key=name,
            value=f"{number} ".encode() + padding.hex().encode(),
            headers=(("trace", f"t{number}".encode()), ("kind", b"order")),
            origin=origin,
        )

    def items(self, origin: int, count: int) -> list[Item]:
        """Return so many."""
        return [self.item(origin) for _ in range(count)]

    def mirror(self, *items: Item) -> None:
        """Write records at their site, and bring them to the other."""
        for side in self.sides:
            side.extend(items)

    def origin(self) -> int:
        """Draw the site that writes next."""
        return self.luck.choice(SIDES) if self.both_ways else 0

    def clean(self, count: int) -> None:
        """Mirror so many records and some more; on keyed topics those between are of hot keys.

        Not the first and the last of a site: beside a gap of a cleaner's nobody can tell of equal
        records which one it took, nor how long a batch was whose length is damaged.
        """
        self._fence()
        for _ in range(count):
            is_hot = self.is_keyed and self.luck.random() < self.hot_share
            key = f"hot{self.luck.randrange(self.hot_keys)}".encode() if is_hot else None
            self.mirror(self.item(self.origin(), key=key))
        self._fence()

    def _fence(self) -> None:
        for origin in SIDES if self.both_ways else (0,):
            self.mirror(self.item(origin))

    def earlier(self, origin: int, count: int = 1) -> list[Item] | None:
        """Return records in a row, of one site, that lie on both sides; None if there are none."""
        source, target = self.sides[origin], set(self.sides[1 - origin])
        found = [
            one
            for one in source
            if isinstance(one, Item) and one.origin == origin and one in target and not one.is_hot
        ]
        if len(found) < count + 40:
            return None
        start = self.luck.randrange(len(found) - count - 30)
        return found[start : start + count]

    def plant(self, name: str, *ways: Iterable[Expected]) -> None:
        """Note a fault that lies behind what was written last."""
        self.faults.append(Fault(name=name, ways=[list(way) for way in ways]))


def items_of(pieces: Iterable[Piece]) -> Iterator[Item]:
    """Yield the committed records that can be read."""
    for piece in pieces:
        if isinstance(piece, Item):
            yield piece
        elif isinstance(piece, Whole) and not (piece.is_damaged or piece.is_aborted):
            yield from piece.items
