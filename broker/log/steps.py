"""Long work cut into steps, so that it can share one thread with everything else.

A generator of `Steps` yields None wherever it may be interrupted, and a callable where it waits for
something slow (an fsync, compressing a large batch): whoever drives it runs that in a worker thread
and sends the result back in.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Slow: TypeAlias = Callable[[], Any]
Steps: TypeAlias = Generator[Slow | None, Any, T]
