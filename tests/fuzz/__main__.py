"""`python -m tests.fuzz --each N [--only NAME]`: so many mutated frames at each single API.

Every API meets a broker of its own. Exit status 1 when one made a mistake or did harm.
"""

import argparse
import logging
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
import trio

from broker.apis.api import Api
from broker.apis.table import APIS
from runtime.process.zookeeper_server import run_zookeeper
from tests.fuzz.answers import header_of
from tests.fuzz.inside import KEPT, Throwing, broker_inside, led, prepare
from tests.fuzz.spared import OBEYED, is_costly


def main() -> int:
    """Throw at one API after the other, and say what came of it."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--each", type=int, default=100_000, help="frames at every API")
    parser.add_argument("--only", choices=sorted(api.name for api in APIS.values()))
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    failed = 0
    for key, api in sorted(APIS.items()):
        if given.only in {None, api.name}:
            faults = trio.run(_throw_at, key, api, given.each, given.seed)
            failed += bool(faults)
            sys.stdout.writelines(f"  {fault}\n" for fault in faults[:3])
            sys.stdout.flush()
    sys.stdout.write(f"FAILED: {failed} APIs\n" if failed else "PASSED\n")
    return 1 if failed else 0


async def _throw_at(key: int, api: Api, count: int, seed: int) -> list[str]:
    """Return what went wrong."""
    began_s = monotonic()
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        async with (
            run_zookeeper(folder / "zookeeper") as zookeeper,
            broker_inside(folder / "logs", zookeeper.address, patch) as node,
        ):
            kept = await prepare(node)
            throwing = Throwing(node, random.Random(seed), _is_of(key))
            outcome = await throwing.throw(count, replaces_deleted=key not in OBEYED)
            faults = list(outcome.faults)
            if key not in OBEYED and (await led(node, KEPT)).read(0, 2**20) != kept:
                faults.append("what nobody named has changed")
    sys.stdout.write(
        f"{api.name}: {outcome.thrown} thrown, {outcome.answered} answered, "
        f"{len(faults)} faults, {monotonic() - began_s:.0f} s\n"
    )
    return faults


def _is_of(key: int) -> Callable[[bytes], bool]:
    """Say which frames are thrown at an API: those with its key, and those that nobody can read."""

    def is_thrown(frame: bytes) -> bool:
        header = header_of(frame)
        return (header is None or header.api_key == key) and not is_costly(frame)

    return is_thrown


if __name__ == "__main__":
    sys.exit(main())
