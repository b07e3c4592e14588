"""`make run` and `make demo`: `python -m demo run` and `python -m demo play`."""

import argparse
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import trio

from demo.play import play
from demo.run import run
from demo.stack import StackFailed
from runtime.process.java import JavaMissing
from runtime.process.logs import configure
from runtime.process.signals import cancel_on_signal
from runtime.process.zookeeper_server import ZooKeeperServerFailed

EXPECTED = (StackFailed, JavaMissing, ZooKeeperServerFailed)


async def _until_signal(story: Callable[[], Awaitable[int | None]], interrupted: int) -> int:
    """Run the story to its end or to the first signal, which ends all of its children."""
    status = interrupted
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(cancel_on_signal, nursery.cancel_scope))
        status = await story() or 0
        nursery.cancel_scope.cancel()
    return status


def main() -> int:
    """Run one of the two stories; 1 when a promise broke or a part failed.

    Ctrl-C is how `run` ends; a `play` that was interrupted has proved nothing.
    """
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start everything and stay until Ctrl-C")
    playing = commands.add_parser("play", help="play the whole story and judge it")
    playing.add_argument("--disaster", action="store_true", help="kill dc1 in mid-stream")
    playing.add_argument(
        "--secured", action="store_true", help="over TLS, with a login at every door"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("build"), help="where data and logs go (%(default)s)"
    )
    options = parser.parse_args()
    configure("demo")
    story: Callable[[], Awaitable[int | None]]
    if options.command == "run":
        story = partial(run, options.folder.resolve() / "run")
    else:
        folder = options.folder.resolve() / "demo"
        story = partial(play, folder, disaster=options.disaster, is_secured=options.secured)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Holds while everything is being stopped, which takes a while and has its own limits.
        signal.signal(number, lambda *_: None)
    failures: list[str] = []
    status = 1
    try:
        status = trio.run(_until_signal, story, 0 if options.command == "run" else 130)
    except* EXPECTED as group:
        failures = [str(error) for error in _leaves(group)]
    for failure in failures:
        print(f"demo: {failure}", file=sys.stderr)
    return 1 if failures else status


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [
        leaf
        for error in group.exceptions
        for leaf in (_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]


if __name__ == "__main__":
    sys.exit(main())
