"""Classes of immutable values that cost little when a program starts.

A frozen dataclass has six functions written and compiled for it. With hundreds of such classes that
was a third of the time in which a command starts. A class of `frozen` has its `__init__` compiled
alone, and not before its first value is made. Its other functions are closures over the names of
its fields. mypy alone keeps fields from being set, which also makes `__init__` three times as fast.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

V = TypeVar("V")


@overload
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[V]) -> type[V]: ...


@overload
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool) -> Callable[[type[V]], type[V]]: ...


def frozen(
    cls: type[V] | None = None, *, kw_only: bool = True
) -> type[V] | Callable[[type[V]], type[V]]:
    """Return the class as a dataclass with slots, compared and hashed by its fields.

    Values are made by keywords, with `kw_only=False` also by place. `repr=False` and
    `compare=False` of a field hold, and so does what the class itself defines.
    """
    if cls is None:
        return lambda cls: _made(cls, kw_only=kw_only)
    return _made(cls, kw_only=kw_only)


def _made(cls: type[V], *, kw_only: bool) -> type[V]:
    own = vars(cls).keys() & {"__init__", "__eq__", "__hash__", "__repr__"}
    # Where there is none, `dataclass` makes one of the signature, which takes as long as the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made = dataclass(slots=True, kw_only=kw_only, init=False, eq=False, repr=False)(cls)
    every = fields(made)  # type: ignore[arg-type]
    compared = [one.name for one in every if one.compare]
    shown = [one.name for one in every if one.repr]
    for function in (_making(made), *_comparing(compared), _showing(shown)):
        if function.__name__ not in own:
            setattr(made, function.__name__, function)
    return made


def _making(made: type) -> Callable[..., None]:
    """Return an `__init__` whose first call puts the real one in its place."""

    def __init__(self: object, *places: object, **named: object) -> None:  # noqa: N807
        every = [(one.name, one.type, one) for one in fields(made)]
        also = {"__post_init__": made.__post_init__} if hasattr(made, "__post_init__") else {}
        twin = make_dataclass(
            made.__qualname__, every, namespace=also, eq=False, repr=False, slots=True
        )
        init = vars(twin)["__init__"]
        setattr(made, init.__name__, init)
        init(self, *places, **named)

    return __init__


def _comparing(names: list[str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    values_of: Callable[[object], object] = attrgetter(*names) if names else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        if type(other) is not type(self):
            return NotImplemented
        return values_of(self) == values_of(other)

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values_of(self))

    return __eq__, __hash__


def _showing(names: list[str]) -> Callable[..., Any]:
    def __repr__(self: object) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__
