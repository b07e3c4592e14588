"""Valid requests of every API in every version, drawn from a seed.

Values come from the annotations that the codec reads, so an API or version that is added later is
thrown too. Names, ids and numbers are such that many requests find what they ask for.
"""

import random
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, Final
from uuid import UUID

from tests.fuzz.batches import any_batch
from wire.headers import RequestHeader, encode_request
from wire.messages.table import APIS
from wire.schema import Unencodable
from wire.schema.plan import Array, FieldPlan, Primitive, Shape, Slot, Structure, plan, top_level
from wire.schema.vocabulary import PrimitiveKind

TOPICS: Final = ("thrown", "thrown", "thrown", "grown", "__consumer_offsets")
ODD_NAMES: Final = (
    *("", ".", "..", "../x", "a/b", "/", "nul\0", "nowhere", "é", "\U0001f4a5", "-1", "*"),
    "x" * 249,
    "x" * 250,
    "y" * 32_767,
)
GROUPS: Final = ("g", "g", "h", "", "группа", "\U0001f4a5", "z" * 5_000)
WORDS: Final = ("", "consumer", "range", "member", "retention.ms", "-1", "compact", "PLAINTEXT")
SMALL: Final = (-1, 0, 0, 0, 1, 1, 2, 3, 100)
_BITS: Final = {
    PrimitiveKind.INT8: (-(2**7), 2**7 - 1),
    PrimitiveKind.INT16: (-(2**15), 2**15 - 1),
    PrimitiveKind.UINT16: (0, 2**16 - 1),
    PrimitiveKind.INT32: (-(2**31), 2**31 - 1),
    PrimitiveKind.UINT32: (0, 2**32 - 1),
    PrimitiveKind.INT64: (-(2**63), 2**63 - 1),
}


class Corpus:
    """Draws requests; the same seed draws the same ones."""

    def __init__(self, luck: random.Random, topic_ids: tuple[UUID, ...] = ()) -> None:
        self._luck = luck
        self._topic_ids = (*topic_ids, UUID(int=0), UUID(int=77))
        self._versions = [
            (request, version) for request in APIS.values() for version in request.VERSIONS
        ]

    def frames(self, each: int) -> list[bytes]:
        """Return `each` frames of every API in every version."""
        return [
            self.frame(request, version) for request, version in self._versions for _ in range(each)
        ]

    def frame(self, request: type[Any], version: int) -> bytes:
        """Return one whole frame, its length in front."""
        header = RequestHeader(
            api_key=request.API_KEY,
            api_version=version,
            correlation_id=self._luck.randrange(2**31),
            client_id=self._luck.choice(("fuzz", "", None, "é" * 20, "__admin_client")),
        )
        while True:
            message = self._structure(top_level(request, version))
            try:
                return b"".join(map(bytes, encode_request(header, message)))
            except Unencodable:
                continue  # this version has no room for what was drawn

    def _structure(self, layout: FieldPlan) -> Any:
        drawn = {slot.name: self._field(slot, layout) for slot in layout.present + layout.tagged}
        missing = {
            one.name: self._value(plan_slot(layout, one.name).shape, one.name, layout)
            for one in fields(layout.cls)
            if one.name not in drawn and one.default is MISSING
        }
        return layout.cls(**drawn, **missing)

    def _field(self, slot: Slot, layout: FieldPlan) -> Any:
        if slot.presence.tag is not None and self._luck.random() < 0.7:
            return slot.default
        return self._value(slot.shape, slot.name, layout)

    def _value(self, shape: Shape, name: str, layout: FieldPlan) -> Any:
        if shape.nullable and self._luck.random() < 0.15:
            return None
        match shape:
            case Structure(cls=cls):
                return self._structure(plan(cls, layout.version, flexible=layout.flexible))
            case Array(element=element):
                count = self._luck.choice((0, 1, 1, 1, 2, 5))
                return tuple(self._value(element, name, layout) for _ in range(count))
            case Primitive(kind=kind):
                return self._primitive(kind, name, layout.cls.__name__)

    def _primitive(self, kind: PrimitiveKind, name: str, owner: str) -> Any:
        luck = self._luck
        if kind in _BITS:
            return self._number(kind, name)
        others: dict[PrimitiveKind, Callable[[], Any]] = {
            PrimitiveKind.BOOLEAN: lambda: luck.random() < 0.5,
            PrimitiveKind.FLOAT64: lambda: luck.choice(
                (0.0, -1.0, 1e308, float("nan"), float("inf"))
            ),
            PrimitiveKind.UUID: lambda: luck.choice(self._topic_ids),
            PrimitiveKind.STRING: lambda: self._string(name, owner),
            PrimitiveKind.BYTES: lambda: luck.randbytes(luck.choice((0, 1, 20, 300))),
            PrimitiveKind.RECORDS: lambda: any_batch(luck),
        }
        return others[kind]()

    def _number(self, kind: PrimitiveKind, name: str) -> int:
        low, high = _BITS[kind]
        if name == "acks":
            return self._luck.choice((-1, -1, 1, 0, 2))
        if name == "broker_epoch":  # others are refused before anything is looked at
            return self._luck.choice((-1, -1, -1, 0, high))
        if self._luck.random() < 0.05:
            return self._luck.choice((low, high, self._luck.randint(low, high)))
        return max(low, min(high, self._luck.choice(SMALL)))

    def _string(self, name: str, owner: str) -> str:
        luck = self._luck
        if luck.random() < 0.1:
            return luck.choice(ODD_NAMES)
        if "group" in name or "key" in name:
            return luck.choice(GROUPS)
        if "topic" in name.lower() or (name == "name" and "opic" in owner):
            return luck.choice(TOPICS)
        return luck.choice(WORDS)


def plan_slot(layout: FieldPlan, name: str) -> Slot:
    """Return the slot of a field that is absent in this version."""
    return next(slot for slot in layout.absent if slot.name == name)
