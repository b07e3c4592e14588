"""A promotion that stands still behind one of its steps, so that a test can try what holds then."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from failover.journal.steps import StepName
from tests.forked import Process, start_program

CONTROLLER: Final = "tests.drill.failover.controller"
"""`failover` that waits for a line behind each step."""


@dataclass(slots=True, kw_only=True)
class Held:
    """The program, its pipes, and what it has said."""

    process: Process
    orders: IO[bytes]
    output: IO[bytes]
    lines: list[str] = field(default_factory=list)

    def go_on_until(self, step: StepName | None) -> None:
        """Let it do its steps and stand still behind this one; without one, up to its end."""
        for line in map(bytes.decode, self.output):
            self.lines.append(line)
            name = line.split(maxsplit=1)[0] if line.split() else ""
            if step is not None and name == step:
                return
            if name in {*StepName}:
                self._release()
        assert step is None, "".join(self.lines)

    def go_on_past(self, step: StepName) -> None:
        """Let it go on, and stand still behind this step."""
        self._release()
        self.go_on_until(step)

    def end(self) -> int:
        """Let it go on to its end; return its exit status."""
        self._release()
        self.go_on_until(None)
        return self.process.wait(60)

    def _release(self) -> None:
        with suppress(BrokenPipeError):  # it was killed meanwhile
            self.orders.write(b"\n")
            self.orders.flush()


@contextmanager
def held_promotion(site: str, file: Path, step: StepName, *how: str) -> Iterator[Held]:
    """Promote a site, and stand still behind a step; what has not ended then is killed."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as output:
        process = start_program(
            CONTROLLER, "promote", site, *how, str(file), output=output, has_stdin=True
        )
    assert process.stdin is not None, "it was started with a pipe"
    with process.stdin as orders, os.fdopen(reading, "rb") as told:
        held = Held(process=process, orders=orders, output=told)
        try:
            held.go_on_until(step)
            yield held
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
