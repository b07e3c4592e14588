"""JSON documents longer than a node of ZooKeeper: their long values lie in parts. Pure.

ZooKeeper takes a mebibyte for a node (`jute.maxbuffer`), and closes the connection of whoever sends
more. So a value whose JSON is long is taken out of its document, packed with zlib, and cut:

    head    {..., "long": [{"at": ["steps", 3, "facts", "ends"], "digest": "5f0c...", "parts": 2}]}
    parts   5f0c...-0  5f0c...-1

`at` says where the value belongs. The digest is SHA-256 of all parts in a row, 32 hexadecimal
digits of it, and names them: a part never changes. Parts are written before the head that names
them, so a reader of a head finds its parts whoever was killed in between.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from runtime.untrusted_json import MAX_BYTES, MAX_DEPTH, read_json, text, unpack, whole_number
from wire.values import frozen

LONG_BYTES: Final = 16 * 1024
"""A value of more JSON than this is taken out. The forty longest ones below it fit a node."""
PART_BYTES: Final = 500_000
MAX_PARTS: Final = 128
"""Of one value: 64 MB packed, as much as may be unpacked."""
MAX_LONG_VALUES: Final = 256
DIGEST_LENGTH: Final = 32
KEY: Final = "long"

Address: TypeAlias = tuple[str | int, ...]


class PartMissing(ValueError):
    """A head names a part that is not there."""


@frozen
class Packed:
    """A long value as its parts."""

    digest: str
    parts: tuple[bytes, ...]

    def named(self) -> dict[str, bytes]:
        """Return the parts by their names."""
        return dict(zip(part_names(self.digest, len(self.parts)), self.parts, strict=True))


@frozen
class LongDocument:
    """A document as it is stored: its head, and the parts that the head names."""

    head: bytes
    parts: Mapping[str, bytes]


def compact(value: object) -> bytes:
    """Return a value's JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def part_names(digest: str, count: int) -> list[str]:
    """Return the names of the parts of one value, in order."""
    return [f"{digest}-{number}" for number in range(count)]


def pack(value: object) -> Packed | None:
    """Return a value in parts; None where its JSON is short enough to stay in its document."""
    plain = compact(value)
    if len(plain) <= LONG_BYTES:
        return None
    packed = zlib.compress(plain, 1)
    parts = tuple(packed[start : start + PART_BYTES] for start in range(0, len(packed), PART_BYTES))
    return Packed(digest=_digest(parts), parts=parts)


class Packer:
    """Packs the values of one document again and again, each value once.

    A value is known by its identity, so whoever gives it away must not change it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Packed | None]] = {}
        self._used: dict[int, tuple[object, Packed | None]] = {}

    def pack(self, value: object, plain: Callable[[], object] | None = None) -> Packed | None:
        """Return what `pack` makes of a value, of `plain()` if the value itself is no JSON."""
        found = self._known.get(id(value))
        if found is None:
            found = (value, pack(value if plain is None else plain()))
        self._used[id(value)] = found
        return found[1]

    def forget_unused(self) -> None:
        """Keep only what was asked for since the last call."""
        self._known, self._used = self._used, {}


def assemble(document: Mapping[str, object], long: Mapping[Address, Packed]) -> LongDocument:
    """Return a document without its long values, which are given beside it, and their parts."""
    if not long:
        return LongDocument(head=compact(document), parts={})
    named = [
        {"at": at, "digest": packed.digest, "parts": len(packed.parts)}
        for at, packed in long.items()
    ]
    parts = {name: data for packed in long.values() for name, data in packed.named().items()}
    return LongDocument(head=compact({**document, KEY: named}), parts=parts)


@frozen
class Reference:
    """What a head says of one long value."""

    at: Address
    digest: str
    names: Sequence[str]


def references(head: bytes) -> tuple[Reference, ...]:
    """Return which parts a head names; raises ValueError for what is no head of ours."""
    document = read_json(head)
    listed = document.get(KEY, []) if isinstance(document, dict) else []
    if not isinstance(listed, list) or len(listed) > MAX_LONG_VALUES:
        raise ValueError(f"{KEY} is no list of at most {MAX_LONG_VALUES} values")
    return tuple(map(_reference, listed))


def _reference(one: Any) -> Reference:  # noqa: ANN401 - JSON
    try:
        at, digest, count = one["at"], text(one["digest"]), whole_number(one["parts"], MAX_PARTS)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{KEY} names no value: {one!r:.80}") from error
    if not isinstance(at, list) or not at or not all(type(key) in {str, int} for key in at):
        raise ValueError(f"{KEY} has no address: {at!r:.80}")
    if len(at) > MAX_DEPTH:  # values put into each other would make a document of any depth
        raise ValueError(f"{KEY} has an address of {len(at)} keys, more than {MAX_DEPTH}")
    is_digest = len(digest) == DIGEST_LENGTH and set(digest) <= set("0123456789abcdef")
    if not is_digest or count == 0:
        raise ValueError(f"{KEY} names no parts: {digest!r:.80}, {count}")
    return Reference(at=tuple(at), digest=digest, names=part_names(digest, count))


def join(head: bytes, parts: Mapping[str, bytes]) -> bytes:
    """Return the whole document's JSON; the head itself where it names no parts.

    Raises PartMissing, and ValueError for parts that are not what the head names, for more than
    MAX_BYTES of them together, and for an address that leads nowhere.
    """
    named = references(head)
    if not named:
        return head
    document = read_json(head)
    del document[KEY]
    left_bytes = MAX_BYTES
    for reference in named:
        plain = _unpack(reference, parts, left_bytes)
        left_bytes -= len(plain)
        _put(document, reference.at, read_json(plain))
    return compact(document)


def _unpack(reference: Reference, parts: Mapping[str, bytes], most_bytes: int) -> bytes:
    missing = [name for name in reference.names if name not in parts]
    if missing:
        raise PartMissing(f"the part {missing[0]} is missing")
    data = [parts[name] for name in reference.names]
    if _digest(data) != reference.digest:
        raise ValueError(f"the parts of {reference.digest} are not what was written")
    return unpack(b"".join(data), most_bytes)


def _put(document: Any, at: Address, value: object) -> None:  # noqa: ANN401 - JSON
    place = document
    try:
        for key in at[:-1]:
            place = place[key]
        if isinstance(place, dict) and isinstance(at[-1], str):
            place[at[-1]] = value
            return
    except (KeyError, IndexError, TypeError):
        pass  # as any other address that leads nowhere
    raise ValueError(f"{KEY} has an address that leads nowhere: {list(at)!r:.80}")


def _digest(parts: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:DIGEST_LENGTH]
