"""Messages of any class and version, drawn by hypothesis from the same annotations the codec reads.

Values stay within what the referee (kio) can say: known error codes, no negative times but -1.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from wire.errors import ErrorCode
from wire.messages.table import APIS
from wire.schema.plan import Array, FieldPlan, Primitive, Shape, Slot, Structure, plan, top_level
from wire.schema.vocabulary import PrimitiveKind

_RANGES = {
    PrimitiveKind.INT8: (-(2**7), 2**7 - 1),
    PrimitiveKind.INT16: (-(2**15), 2**15 - 1),
    PrimitiveKind.UINT16: (0, 2**16 - 1),
    PrimitiveKind.INT32: (-(2**31), 2**31 - 1),
    PrimitiveKind.UINT32: (0, 2**32 - 1),
    PrimitiveKind.INT64: (-(2**63), 2**63 - 1),
}

MESSAGE_CLASSES: list[type[Any]] = [
    cls for request in APIS.values() for cls in (request, request.RESPONSE)
]
VERSIONED_CLASSES = [(cls, version) for cls in MESSAGE_CLASSES for version in cls.VERSIONS]


def case_name(value: object) -> str:
    """Name a parametrized case after class and version."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


def messages(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Return a strategy for messages that can be said in `version`."""
    return _messages(cls.__name__, version)


@cache
def _messages(name: str, version: int) -> st.SearchStrategy[Any]:
    cls = next(cls for cls in MESSAGE_CLASSES if cls.__name__ == name)
    return _structures(top_level(cls, version))


def _structures(layout: FieldPlan) -> st.SearchStrategy[Any]:
    there = layout.present + layout.tagged
    return st.builds(layout.cls, **{slot.name: _values(slot, layout) for slot in there})


def _values(slot: Slot, layout: FieldPlan) -> st.SearchStrategy[Any]:
    if slot.name.endswith("error_code"):
        return st.sampled_from([int(code) for code in ErrorCode])
    if slot.name.endswith("_ms"):
        # kio reads no time before 1970 where it has no null for it.
        return st.integers(0 if slot.name.endswith("_start_time_ms") else -1, 2**31 - 1)
    return _shaped(slot.shape, layout)


def _shaped(shape: Shape, layout: FieldPlan) -> st.SearchStrategy[Any]:
    match shape:
        case Primitive(kind=kind):
            values = _primitives(kind)
        case Structure(cls=cls):
            values = _structures(plan(cls, layout.version, flexible=layout.flexible))
        case Array(element=element):
            values = st.lists(_shaped(element, layout), max_size=3).map(tuple)
    return st.none() | values if shape.nullable else values


def _primitives(kind: PrimitiveKind) -> st.SearchStrategy[Any]:
    match kind:
        case PrimitiveKind.BOOLEAN:
            return st.booleans()
        case PrimitiveKind.FLOAT64:
            return st.floats(allow_nan=False)
        case PrimitiveKind.UUID:
            return st.uuids()
        case PrimitiveKind.STRING:
            return st.text(max_size=12)
        case PrimitiveKind.BYTES | PrimitiveKind.RECORDS:
            return st.binary(max_size=20)
        case _:
            return st.integers(*_RANGES[kind])
