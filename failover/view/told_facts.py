"""The facts of a journal that reports tell, without those that are not as any step writes them.

Facts that decide a step are checked when a journal is read. All others are for people, and a
controller goes on without understanding them; so a report has to, whoever wrote the journal: what
such a fact would tell is not known. Pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from failover.journal.journal import Journal, StepRecord
from runtime.untrusted_json import LARGEST

Shape: TypeAlias = Callable[[Any], bool]
LEFT_OUT: Final = "not_understood"
"""The fact that names those of its step that were left out."""


def _is_number(value: Any) -> bool:  # noqa: ANN401 - JSON, as all values here
    return type(value) is int and 0 <= value <= LARGEST


def _is_text(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, bool)


def _is_seconds(value: Any) -> bool:  # noqa: ANN401
    return type(value) in {int, float} and 0 <= value <= LARGEST


def _or_none(shape: Shape) -> Shape:
    return lambda value: value is None or shape(value)


def _each(shape: Shape) -> Shape:
    return lambda value: isinstance(value, list | tuple) and all(map(shape, value))


def _by_name(shape: Shape) -> Shape:
    return lambda value: isinstance(value, Mapping) and all(map(shape, value.values()))


def _fields(**shapes: Shape) -> Shape:
    """Return the shape of an object with just these fields."""
    return lambda value: (
        isinstance(value, Mapping)
        and value.keys() == shapes.keys()
        and all(shape(value[name]) for name, shape in shapes.items())
    )


def _some_of(**shapes: Shape) -> Shape:
    """Return the shape of an object of which these fields are told, where it has them."""
    return lambda value: (
        isinstance(value, Mapping)
        and all(shape(value[name]) for name, shape in shapes.items() if name in value)
    )


_RANGES: Final = _each(
    _fields(topic=_is_text, partition=_is_number, start=_is_number, stop=_is_number)
)
SHAPES: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("partitions", "records", "had_members", "groups", "committed", "before_start"),
            _is_number,
        ),
        **dict.fromkeys(
            (
                f"more_{one}"
                for one in ("members", "left", "cut", "unstable", "bounded", "stray", "foreign")
            ),
            _is_number,
        ),
        "more_untold": _is_number,
        "configured": _is_flag,
        "fenced": lambda value: _is_flag(value) or _is_number(value),
        **dict.fromkeys(("why", "not_looked", "source_silent", "stray_unknown"), _is_text),
        "flow": _is_text,
        **dict.fromkeys(
            ("topics", "still_members", "not_carried", "unmirrored"), _by_name(_is_number)
        ),
        **dict.fromkeys(("cut", "stray", "untold", "evidence"), _by_name(_is_text)),
        "left": lambda value: _is_text(value) or _by_name(_is_text)(value),
        **dict.fromkeys(("appended", "foreign", "taken"), _RANGES),
        "shrunk": _each(
            _fields(topic=_is_text, partition=_is_number, drained=_is_number, end=_is_number)
        ),
        **dict.fromkeys(("made", "unstable"), _each(_is_text)),
        "bounded": _by_name(_some_of(partitions=_is_number, reread=_or_none(_is_number))),
        "loss": _some_of(
            records=_or_none(_is_number),
            records_at_least=_or_none(_is_number),
            seconds=_or_none(_is_seconds),
            partitions=_by_name(_is_number),
            before_start=_is_number,
        ),
    }
)
"""By key, whatever the step, what reports take for granted of a fact."""


def understood(journal: Journal) -> Journal:
    """Return the journal as reports tell it; a step says in LEFT_OUT which facts are left out."""
    return replace(journal, steps=tuple(map(_understood, journal.steps)))


def _understood(record: StepRecord) -> StepRecord:
    wrong = sorted(key for key, fact in record.facts.items() if not _is_as_written(key, fact))
    if not wrong:
        return record
    kept = {key: fact for key, fact in record.facts.items() if key not in wrong}
    return replace(record, facts={**kept, LEFT_OUT: wrong})


def _is_as_written(key: str, fact: object) -> bool:
    return key not in SHAPES or SHAPES[key](fact)
