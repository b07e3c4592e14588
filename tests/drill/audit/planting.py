"""The faults: each writes a few records to both sites, and says what an audit must find."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from tests.drill.audit.items import Expected, Hole, Item, Piece, SidedPiece, Whole, Writing

Plant: TypeAlias = Callable[[Writing], None]


class _Direction:
    """One direction of a partition: what its source writes, and what arrives."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing
        self.origin = writing.origin()
        self.source = writing.sides[self.origin]
        self.target = writing.sides[1 - self.origin]

    def items(self, count: int) -> list[Item]:
        return self.writing.items(self.origin, count)

    def here(self, piece: Piece) -> SidedPiece:
        return self.origin, piece

    def there(self, piece: Piece) -> SidedPiece:
        return 1 - self.origin, piece

    def lost(self, *items: Item, words: str = "") -> list[Expected]:
        return [
            Expected(kind="lost", origin=self.origin, source=self.here(one), words=words)
            for one in items
        ]

    def pair(self, kind: str, source: Item, target: Item, words: str = "") -> Expected:
        return Expected(
            kind=kind,
            origin=self.origin,
            source=self.here(source),
            target=self.there(target),
            words=words,
        )

    def phantom(self, item: Item, words: str = "on the source") -> Expected:
        return Expected(kind="phantom", origin=self.origin, target=self.there(item), words=words)


def lost(writing: Writing) -> None:
    way = _Direction(writing)
    items = way.items(writing.luck.choice((1, 1, 2, 5)))
    way.source += items
    writing.plant("lost", way.lost(*items))


def lost_batch(writing: Writing) -> None:
    way = _Direction(writing)
    items = way.items(writing.luck.randint(3, 60))
    way.source.append(Whole(items=tuple(items)))
    writing.plant("lost batch", way.lost(*items))


def doubled(writing: Writing) -> None:
    way = _Direction(writing)
    (item,) = way.items(1)
    copy = item.copied()
    way.source.append(item)
    way.target += [item, copy]
    writing.plant("doubled", *([way.pair("duplicated", item, one)] for one in (copy, item)))


def replayed(writing: Writing) -> None:
    """Records that arrived long ago arrive again."""
    way = _Direction(writing)
    count = writing.luck.choice((1, 3, 40))
    originals = writing.earlier(way.origin, count)
    if originals is None:
        doubled(writing)
        return
    copies = [one.copied() for one in originals]
    way.target += copies
    writing.plant(
        "replayed",
        [way.pair("duplicated", *both) for both in zip(originals, copies, strict=True)],
    )


def reordered(writing: Writing) -> None:
    """One record comes later than those behind it, or before those before it."""
    way = _Direction(writing)
    items = way.items(writing.luck.randint(3, 9))
    way.source += items
    moved = items[0] if writing.luck.random() < 0.5 else items[-1]
    rest = [one for one in items if one is not moved]
    arrived = [*rest, moved] if moved is items[0] else [moved, *rest]
    way.target += arrived
    writing.plant("reordered", [way.pair("reordered", moved, moved)])


def swapped(writing: Writing) -> None:
    """Of two neighbours either has moved."""
    way = _Direction(writing)
    first, second = way.items(2)
    way.source += [first, second]
    way.target += [second, first]
    writing.plant("swapped", *([way.pair("reordered", one, one)] for one in (first, second)))


def _altered(name: str, field: str, change: Callable[[Writing, Item], Item]) -> Plant:
    def plant(writing: Writing) -> None:
        way = _Direction(writing)
        (item,) = way.items(1)
        other = change(writing, item)
        way.source.append(item)
        way.target.append(other)
        writing.plant(name, [way.pair("altered", item, other, f"with another {field}")])

    return plant


def _one_bit(writing: Writing, item: Item) -> Item:
    assert item.value is not None, "new records have values"
    at = writing.luck.randrange(len(item.value))
    flipped = item.value[at] ^ (1 << writing.luck.randrange(8))
    return replace(item, value=item.value[:at] + bytes([flipped]) + item.value[at + 1 :])


def _to_tombstone(_: Writing, item: Item) -> Item:
    return replace(item, value=None)


def _emptied(_: Writing, item: Item) -> Item:
    return replace(item, value=b"")


def _another_key(_: Writing, item: Item) -> Item:
    return replace(item, key=(item.key or b"") + b"x")


def _no_key(_: Writing, item: Item) -> Item:
    return replace(item, key=None)


def _another_time(writing: Writing, item: Item) -> Item:
    return replace(item, timestamp_ms=item.timestamp_ms - writing.luck.choice((1, 999, 3_600_000)))


def _header_value(_: Writing, item: Item) -> Item:
    (name, value), *rest = item.headers
    return replace(item, headers=((name, (value or b"") + b"!"), *rest))


def _header_name(_: Writing, item: Item) -> Item:
    (_name, value), *rest = item.headers
    return replace(item, headers=(("tracf", value), *rest))


def _header_order(_: Writing, item: Item) -> Item:
    return replace(item, headers=item.headers[::-1])


def _header_more(_: Writing, item: Item) -> Item:
    return replace(item, headers=(*item.headers, ("more", None)))


def _header_gone(_: Writing, item: Item) -> Item:
    return replace(item, headers=item.headers[:-1])


ALTERED: Final[Mapping[str, Plant]] = {
    name: _altered(name, field, change)
    for name, field, change in (
        ("altered: value", "value", _one_bit),
        ("altered: to a tombstone", "value", _to_tombstone),
        ("altered: value emptied", "value", _emptied),
        ("altered: key", "key", _another_key),
        ("altered: key gone", "key", _no_key),
        ("altered: timestamp", "timestamp", _another_time),
        ("altered: header's value", "headers", _header_value),
        ("altered: header's name", "headers", _header_name),
        ("altered: headers' order", "headers", _header_order),
        ("altered: a header more", "headers", _header_more),
        ("altered: a header less", "headers", _header_gone),
    )
}


def altered_among_equals(writing: Writing) -> None:
    way = _Direction(writing)
    (first,) = way.items(1)
    run = [first, *(first.copied() for _ in range(writing.luck.randint(2, 30)))]
    number = writing.luck.randrange(len(run))
    arrived = [*run]
    arrived[number] = _one_bit(writing, run[number])
    way.source += run
    way.target += arrived
    writing.plant(
        "altered among equals", [way.pair("altered", run[number], arrived[number], "value")]
    )


def phantom(writing: Writing) -> None:
    way = _Direction(writing)
    items = way.items(writing.luck.choice((1, 1, 3)))
    way.target += items
    writing.plant("phantom", [way.phantom(one) for one in items])


def lost_beside_a_copy(writing: Writing) -> None:
    """Counts agree: only the contents tell."""
    way = _Direction(writing)
    originals = writing.earlier(way.origin)
    if originals is None:
        lost(writing)
        return
    (missing,) = way.items(1)
    copy = originals[0].copied()
    way.source.append(missing)
    way.target.append(copy)
    writing.plant(
        "lost beside a copy",
        [*way.lost(missing), way.pair("duplicated", originals[0], copy)],
    )


def corrupt_on_target(writing: Writing) -> None:
    way = _Direction(writing)
    items = way.items(writing.luck.randint(1, 6))
    batch = Whole(items=tuple(items), is_damaged=True)
    way.source += items
    way.target.append(batch)
    corrupt = Expected(kind="corrupt", origin=way.origin, target=way.there(batch))
    writing.plant("corrupt on the target", [corrupt])


def corrupt_on_source(writing: Writing) -> None:
    way = _Direction(writing)
    items = way.items(writing.luck.randint(1, 6))
    batch = Whole(items=tuple(items), is_damaged=True)
    way.source.append(batch)
    way.target += items
    corrupt = Expected(kind="corrupt", origin=way.origin, source=way.here(batch))
    writing.plant("corrupt on the source", [corrupt])


def hole_on_source(writing: Writing) -> None:
    way = _Direction(writing)
    hole = Hole(writing.luck.randint(1, 50))
    way.source.append(hole)
    writing.plant(
        "hole on the source", [Expected(kind="hole", origin=way.origin, source=way.here(hole))]
    )


def hole_on_target(writing: Writing) -> None:
    way = _Direction(writing)
    hole = Hole(writing.luck.randint(1, 50))
    way.target.append(hole)
    writing.plant(
        "hole on the target", [Expected(kind="hole", origin=way.origin, target=way.there(hole))]
    )


def lost_for_a_hole(writing: Writing) -> None:
    """The target has offsets for the records, but not the records."""
    way = _Direction(writing)
    items = way.items(writing.luck.randint(1, 5))
    hole = Hole(len(items))
    way.source += items
    way.target.append(hole)
    of_hole = Expected(kind="hole", origin=way.origin, target=way.there(hole))
    writing.plant("lost, a hole for it", [*way.lost(*items), of_hole])


def aborted_and_there(writing: Writing) -> None:
    """The target shows records of a transaction that the source aborted."""
    way = _Direction(writing)
    items = way.items(writing.luck.randint(1, 4))
    way.source.append(Whole(items=tuple(items), is_aborted=True))
    copies = [one.copied() for one in items]
    way.target += copies
    writing.plant("aborted and there", [way.phantom(one, "aborted") for one in copies])


def lost_last_value(writing: Writing) -> None:
    """The target's gap has room for the key's last record; its cleaner cannot have taken it."""
    way = _Direction(writing)
    old, last = way.items(2)
    last.key = old.key
    way.source += [old]
    way.target += [old]
    writing.clean(3)
    way.source.append(last)
    way.target.append(Hole(1))
    writing.plant("lost last value", way.lost(last, words="no cleaner took it"))


def lost_tombstone(writing: Writing) -> None:
    way = _Direction(writing)
    value, tombstone = way.items(2)
    tombstone.key, tombstone.value = value.key, None
    writing.mirror(value)
    writing.clean(3)
    way.source.append(tombstone)
    way.target.append(Hole(1))
    writing.plant("lost tombstone", way.lost(tombstone, words="no cleaner took it"))


def crossed(writing: Writing) -> None:
    """Both sites write a key before either has the other's record: readers differ for good."""
    ours, theirs = writing.item(0), writing.item(1)
    theirs.key = ours.key
    writing.sides[0].extend([ours, theirs])
    writing.sides[1].extend([theirs, ours])
    # Of two directions the one that is audited last tells it: out of the second site.
    told = Expected(kind="ends differently", origin=1, source=(1, ours), target=(0, theirs))
    writing.plant("crossed writes", [told])


OF_RECORDS: Final[Mapping[str, Plant]] = {
    "lost": lost,
    "lost batch": lost_batch,
    "doubled": doubled,
    "replayed": replayed,
    "reordered": reordered,
    "swapped": swapped,
    **ALTERED,
    "altered among equals": altered_among_equals,
    "phantom": phantom,
    "lost beside a copy": lost_beside_a_copy,
    "corrupt on the target": corrupt_on_target,
    "corrupt on the source": corrupt_on_source,
}
OF_PLAIN_LOGS: Final[Mapping[str, Plant]] = {
    "hole on the source": hole_on_source,
    "hole on the target": hole_on_target,
    "lost, a hole for it": lost_for_a_hole,
}
OF_TRANSACTIONS: Final[Mapping[str, Plant]] = {"aborted and there": aborted_and_there}
OF_KEYED: Final[Mapping[str, Plant]] = {
    "lost last value": lost_last_value,
    "lost tombstone": lost_tombstone,
}
"""On compacted topics of one direction."""
OF_BOTH_KEYED: Final[Mapping[str, Plant]] = {"crossed writes": crossed}
