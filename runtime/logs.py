"""One log format for every program: one line an event, on standard error."""

import logging
import sys


def configure(program: str, *, verbose: bool = False) -> None:
    """Log to standard error as `time program level module: message`.

    kazoo warns of every attempt to connect, several a second while no server answers;
    `runtime.zookeeper` says the same once, so only kazoo's errors are kept.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if verbose else logging.INFO,
        format=f"%(asctime)s {program} %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    logging.getLogger("kazoo").setLevel(logging.WARNING if verbose else logging.ERROR)
