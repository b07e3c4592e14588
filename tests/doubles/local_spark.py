"""A Spark without a JVM: what it is given to do is done in this process, at once.

An audit of a few records takes 7 CPU-s in Spark, of which 6 start and end it. `test_session` holds
this beside a real one; what a JVM, its workers and what travels to them may do is shown there and
in `test_program`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

CORES = 2


@dataclass(frozen=True, slots=True)
class LocalJob:
    """Groups of items, and what is done with each group when the result is asked for."""

    groups: Sequence[Sequence[Any]]
    work: Callable[[Iterable[Any]], Iterable[Any]] = iter

    def mapPartitions(self, work: Callable[[Iterable[Any]], Iterable[Any]]) -> "LocalJob":  # noqa: N802
        """Return the same groups with this work to be done."""
        return LocalJob(self.groups, work)

    def collect(self) -> list[Any]:
        """Do the work and return all that it yields, in the order of the groups."""
        return [item for group in self.groups for item in self.work(iter(group))]


@dataclass(frozen=True, slots=True)
class LocalSpark:
    """What audits without evidence use of a SparkContext."""

    defaultParallelism: int = CORES  # noqa: N815

    def parallelize(self, items: Sequence[Any], count: int) -> LocalJob:
        """Deal the items to so many groups, each a stretch of them, as Spark does."""
        bounds = [number * len(items) // count for number in range(count + 1)]
        return LocalJob([items[bounds[at] : bounds[at + 1]] for at in range(count)])


@contextmanager
def local_sessions() -> Iterator[None]:
    """Have audits in this process run without a JVM while the block runs."""

    @contextmanager
    def open_local(**_: object) -> Iterator[LocalSpark]:
        yield LocalSpark()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_audit.run.open_session", open_local)
        yield
