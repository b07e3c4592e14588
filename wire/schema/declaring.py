"""The decorator of messages and their structures.

A dataclass has six functions written and compiled for it. Over all messages of the protocol that
was a third of the time in which a program starts, so all but `__init__` are one function here.
Immutable they are for mypy alone, which also makes `__init__` three times as fast.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import eq
from typing import Any, TypeVar, dataclass_transform

M = TypeVar("M")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[M]) -> type[M]:
    """Return the class as a dataclass: frozen, with slots, made by keywords."""
    # Where there is none, `dataclass` makes one of the signature, which takes as long as the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made = dataclass(slots=True, kw_only=True, eq=False, repr=False)(cls)
    for name, function in _SHARED.items():
        setattr(made, name, function)
    return made


def _values(self: Any) -> Iterator[Any]:  # noqa: ANN401 - any message
    return (getattr(self, name) for name in self.__slots__)


def _equal(self: object, other: object) -> bool:
    return type(other) is type(self) and all(map(eq, _values(self), _values(other)))


def _hash(self: object) -> int:
    return hash(tuple(_values(self)))


def _repr(self: object) -> str:
    named = zip(self.__slots__, _values(self), strict=True)  # type: ignore[attr-defined]
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in named)})"


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _repr}
