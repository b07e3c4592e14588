"""`mirror run --workers N`: N daemons of one machine that share the flows, restarted when dead.

They are workers like those of other machines: the assignment in the witness says what each mirrors.
They end with this process, however that ends.
"""

import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import trio

from runtime.configuration.config import Configuration, ConfigurationError
from runtime.process.child import end_child, kill_child, open_child
from runtime.process.signals import cancel_on_signal, take_held_hangups
from runtime.program.program import ExitStatus
from wire.values import frozen

_LOG = logging.getLogger(__name__)

MAX_PORT: Final = 65_535
PORT_STEP: Final = 10
"""Between the metrics ports of two workers: those in between are other programs'."""
STOP_S: Final = 9.5
"""A daemon takes 9 s at most, 10 are promised."""
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 30.0
STEADY_S: Final = 60.0
"""A child that has run for so long before it died is started again after the first pause."""
BAD_INPUT: Final = ExitStatus.BAD_INPUT
"""A daemon's exit status for what does not pass by trying again.

Of one that has run before it says that the file has become wrong since. The others go on as they do
at a reload, and so does this one when the file is right again.
"""


@frozen
class RestartBackoff:
    """The pause before a child is started again. Pure."""

    pause_s: float = FIRST_PAUSE_S

    def after(self, ran_s: float) -> tuple[float, "RestartBackoff"]:
        """Return the pause for a child that has died after so long, and what holds then."""
        pause_s = FIRST_PAUSE_S if ran_s >= STEADY_S else self.pause_s
        return pause_s, RestartBackoff(pause_s=min(2 * pause_s, MAX_PAUSE_S))


def as_worker(configuration: Configuration, number: int) -> Configuration:
    """Return the configuration of one of several: the metrics port is its own, 0 stays any."""
    metrics = configuration.metrics
    if metrics.mirror_port == 0 or number == 0:
        return configuration
    port = metrics.mirror_port + PORT_STEP * number
    return replace(configuration, metrics=replace(metrics, mirror_port=port))


async def supervise(configuration: Configuration, count: int, log_words: Sequence[str]) -> int:
    """Run until SIGINT or SIGTERM; return the exit status: 2 at a child's first start ends all.

    Raises ConfigurationError where there are not so many ports for metrics.
    """
    last = as_worker(configuration, count - 1).metrics.mirror_port
    if last > MAX_PORT:
        raise ConfigurationError(
            f"{configuration.file}: metrics.mirror_port: worker {count - 1} would serve at {last}: "
            f"there is no port beyond {MAX_PORT}"
        )
    supervisor = _Supervisor(configuration, log_words)
    with trio.CancelScope() as until_asked:
        async with trio.open_nursery() as nursery:
            await nursery.start(cancel_on_signal, until_asked)
            await nursery.start(supervisor.pass_on_hangups)
            for number in range(count):
                nursery.start_soon(supervisor.keep_running, number, until_asked)
    return supervisor.status


class _Supervisor:
    """The children, and what they are started with."""

    def __init__(self, configuration: Configuration, log_words: Sequence[str]) -> None:
        self.status = 0
        self._configuration = configuration
        self._log_words = log_words
        self._children: dict[int, trio.Process] = {}

    async def keep_running(self, number: int, all_of_them: trio.CancelScope) -> None:
        """Run one worker, again and again; when cancelled, let it settle and end."""
        backoff, starts = RestartBackoff(), 0
        while True:
            began_s = trio.current_time()
            try:
                child = await open_child(self._command(number))
            except OSError as fault:  # out of processes or memory: the others go on
                pause_s, backoff = backoff.after(0.0)
                _LOG.error("worker %d cannot be started: %s: again in %g s", number, fault, pause_s)
                await trio.sleep(pause_s)
                continue
            starts += 1
            self._children[number] = child
            _LOG.info("worker %d is process %d", number, child.pid)
            try:
                status = await child.wait()
            finally:
                del self._children[number]
                await end_child(child, patience_s=STOP_S)
            if status == BAD_INPUT and starts == 1:
                self.status = BAD_INPUT
                all_of_them.cancel()
                return
            kill_child(child)
            pause_s, backoff = backoff.after(trio.current_time() - began_s)
            _LOG.warning(
                "worker %d has ended with status %d: started again in %g s",
                *(number, status, pause_s),
            )
            await trio.sleep(pause_s)

    def _command(self, number: int) -> Sequence[str]:
        file = str(self._configuration.file)
        return [
            *(sys.executable, "-m", "mirror", *self._log_words, "run", file),
            *("--worker-number", str(number)),
        ]

    async def pass_on_hangups(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Have every worker read the file again at SIGHUP."""
        with trio.open_signal_receiver(signal.SIGHUP) as signals:
            task_status.started()
            take_held_hangups()
            async for _ in signals:
                for child in self._children.values():
                    child.send_signal(signal.SIGHUP)
