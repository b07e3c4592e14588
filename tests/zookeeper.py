"""A ZooKeeper of its own process, so that tests need no event loop for it.

Most tests want one to write into, not to start and stop it: they share that of `tests/conftest.py`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from runtime.ports import free_port
from tests.forked import start_program

OFTEN: Final = {"max_tries": -1, "delay": 0.05, "backoff": 1, "max_jitter": 0.0}
"""kazoo waits ever longer between attempts otherwise: a server is there in a second."""
KEPT: Final = "zookeeper"
"""What the server itself keeps below its root."""


@contextmanager
def run_witness(folder: Path) -> Iterator[str]:
    """Run a server until the block ends; return its address."""
    port = free_port()
    arguments = ["runtime.zookeeper_server", "--data", str(folder), "--port", str(port)]
    with Path(os.devnull).open("wb") as nowhere:
        process = start_program(*arguments, output=nowhere)
    address = f"127.0.0.1:{port}"
    try:
        client = KazooClient(hosts=address, connection_retry=OFTEN)
        client.start(timeout=120)
        client.stop()
        client.close()
        yield address
    finally:
        process.terminate()
        process.wait(60)


def make_empty(address: str) -> None:
    """Delete every node."""
    client = KazooClient(hosts=address)
    client.start(timeout=120)
    try:
        for child in client.get_children("/"):
            if child != KEPT:
                client.delete(f"/{child}", recursive=True)
    finally:
        client.stop()
        client.close()
