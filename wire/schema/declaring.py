"""The decorator of messages and their structures."""

from typing import TypeVar, dataclass_transform

from wire.values import frozen

M = TypeVar("M")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[M]) -> type[M]:
    """Return the class as `frozen` does; to mypy `since(...)` and its like are plain defaults."""
    return frozen(cls)
