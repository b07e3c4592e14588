"""The program `broker`: `run` is one broker, `up` a whole local cluster with its ZooKeeper.

Exit status: 0 ended as asked, 1 something failed while it started or ran, 2 wrong input.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from broker.config import BrokerConfig, parse_config
from broker.garbage import freeze_what_stays
from broker.log.config import InvalidConfig
from broker.log.results import StorageError
from broker.node import run_broker
from broker.parent import cancel_without_parent
from broker.ports import PortWishes
from broker.server import CannotListen
from broker.up import ClusterFailed, UpOptions, bring_up
from broker.zookeeper.store import BrokerIdTaken
from broker.zookeeper.tree import MalformedNode
from runtime.java import JavaMissing
from runtime.logs import configure
from runtime.metrics import AddressInUse
from runtime.properties import ConfigurationError, parse_override, read_properties
from runtime.signals import cancel_on_signal
from runtime.zookeeper import ZooKeeperFault
from runtime.zookeeper_server import ZooKeeperServerFailed

_LOG = logging.getLogger(__name__)

MAX_PORT: Final = 65_535
WRONG_INPUT: Final = 2
FAILED: Final = 1

FAULTS: Final = (
    AddressInUse,
    BrokerIdTaken,
    CannotListen,
    ClusterFailed,
    JavaMissing,
    MalformedNode,
    StorageError,
    ZooKeeperFault,
    ZooKeeperServerFailed,
)
"""What ends the program with one line that says it all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "run":
        return _run(options)
    return _up(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="broker",
        description="The bundled Kafka broker.",
        epilog="Exit status: 0 ended as asked, 1 it failed to start or to run, 2 wrong input.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run one broker in the foreground")
    run.add_argument("properties", type=Path, help="a server.properties in Kafka's format")
    _add_common(run)
    up = commands.add_parser("up", help="run a whole local cluster and its ZooKeeper")
    _add(up, "--brokers", "how many", type=_count, default=3, metavar="N")
    _add(up, "--data", "kept from run to run", type=Path, default=Path("broker-data"))
    _add(up, "--host", "where all listen", default="127.0.0.1")
    _add(up, "--port", "of the first broker; 0: free ones", type=_port, default=9092)
    _add(up, "--zookeeper-port", "0: a free one", type=_port, default=0)
    _add(up, "--cluster-name", "used in messages", default="dc1")
    up.add_argument("--metrics-port", type=_port, help="of the first broker; 0: free ones")
    up.add_argument("--ready-file", type=Path, metavar="PATH", help="JSON, written when ready")
    _add_common(up)
    return parser


def _add(
    parser: argparse.ArgumentParser,
    option: str,
    text: str,
    **settings: Any,  # noqa: ANN401 - argparse's own
) -> None:
    """Add an option that has a default, and show it."""
    parser.add_argument(option, help=f"{text} (default: %(default)s)", **settings)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--end-with-stdin",
        action="store_true",
        help="end when standard input ends: a child does not outlive its parent",
    )
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
    )


def _count(text: str) -> int:
    value = _number(text)
    if not 1 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{value} is not within 1 and 100")
    return value


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error


def _port(text: str) -> int:
    value = _number(text)
    if not 0 <= value <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"there is no port {value}")
    return value


def _run(options: argparse.Namespace) -> int:
    configure("broker")
    try:
        config = _config(options.properties, options.override)
    except ConfigurationError as error:
        return _complain(str(error), WRONG_INPUT)
    return _guarded(
        partial(trio.run, _run_until_signal, config, options.end_with_stdin), what="broker run"
    )


def _config(path: Path, overrides: Sequence[str]) -> BrokerConfig:
    properties = read_properties(path)
    for override in map(parse_override, overrides):
        properties[override.key] = override
    return parse_config(properties.values(), file=str(path))


async def _run_until_signal(config: BrokerConfig, ends_with_stdin: bool) -> None:  # noqa: FBT001
    async with trio.open_nursery() as nursery:
        await nursery.start(cancel_on_signal, nursery.cancel_scope)
        if ends_with_stdin:
            nursery.start_soon(cancel_without_parent, nursery.cancel_scope)
        await nursery.start(run_broker, config)
        nursery.start_soon(freeze_what_stays)


def _up(options: argparse.Namespace) -> int:
    for option, first in (("--port", options.port), ("--metrics-port", options.metrics_port)):
        if first and first + options.brokers - 1 > MAX_PORT:
            last = first + options.brokers - 1
            return _complain(f"{option} {first}: there is no port {last}", WRONG_INPUT)
    configure(f"cluster {options.cluster_name}")
    try:
        overrides = {entry.key: entry.value for entry in map(parse_override, options.override)}
    except ConfigurationError as error:
        return _complain(str(error), WRONG_INPUT)
    wanted = UpOptions(
        name=options.cluster_name,
        data=options.data.resolve(),
        ports=PortWishes(
            host=options.host,
            brokers=options.brokers,
            broker_port=options.port,
            zookeeper_port=options.zookeeper_port,
            metrics_port=options.metrics_port,
        ),
        ready_file=options.ready_file,
        overrides=overrides,
        ends_with_stdin=options.end_with_stdin,
    )
    return _guarded(partial(trio.run, bring_up, wanted), what="broker up")


def _guarded(program: partial[None], *, what: str) -> int:
    """Run to the end; a known fault becomes one line and an exit status."""
    failures: list[str] = []
    wrong: list[str] = []
    try:
        program()
    except* FAULTS as group:
        failures += _messages(group)
    except* (ConfigurationError, InvalidConfig) as group:
        wrong += _messages(group)
    except* KeyboardInterrupt:
        _LOG.info("%s: interrupted", what)
    for message in dict.fromkeys([*wrong, *failures]):
        _complain(message, FAILED)
    if wrong:
        return WRONG_INPUT
    return FAILED if failures else 0


def _messages(group: BaseExceptionGroup[BaseException]) -> list[str]:
    found: list[str] = []
    for error in group.exceptions:
        found += _messages(error) if isinstance(error, BaseExceptionGroup) else [str(error)]
    return found


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"broker: {message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
