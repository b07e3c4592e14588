"""Arrow and Spark without pandas, whose import takes a process 1.5 CPU-s; nothing here uses it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _Hides(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError("hidden from Arrow", name=fullname)
        return None


@contextmanager
def hidden_pandas() -> Iterator[None]:
    """Let who looks for pandas in this block look in vain; it is there again behind the block."""
    hides = _Hides()
    sys.meta_path.insert(0, hides)
    try:
        yield
    finally:
        sys.meta_path.remove(hides)


def forgo_pandas() -> None:
    """Let Arrow look for pandas now, in vain; everything else in this process may still import it.

    At the first array that Arrow makes of a list it imports pandas, only to ask whether the list is
    one of that library's. It asks once in a process.
    """
    with hidden_pandas():
        pa.array([None])
