"""Whether a fake still has the shape of what it stands for: a rename there is to fail here."""

import inspect
from collections.abc import Iterator

Shape = tuple[int, frozenset[str]]


def unlike(fake: type, real: type) -> list[str]:
    """Return what the fake offers otherwise than the real one, or the real one not at all."""
    return list(_differences(fake, real))


def _differences(fake: type, real: type) -> Iterator[str]:
    for name, offered in inspect.getmembers(fake, _is_a_way):
        if name.startswith("_") and name != "__init__":
            continue
        way = getattr(real, name, None)
        if way is None:
            yield f"{real.__name__} has no {name}"
        elif isinstance(offered, property) != isinstance(way, property):
            yield f"{name} is a property of one of them"
        elif inspect.isfunction(offered) and inspect.isfunction(way):
            ours, theirs = _shape(offered), _shape(way)
            if ours != theirs:
                yield f"{name} takes {ours}, that of {real.__name__} {theirs}"


def _is_a_way(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, property)


def _shape(function: object) -> Shape:
    """Return how many arguments there are by position, and the names of those by name only."""
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    count = sum(one.kind in positional for one in parameters)
    named = {one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
    return count, frozenset(named)
