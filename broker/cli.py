"""The command line of `broker`.

`run` is one broker, `up` a whole local cluster with ZooKeeper. The other commands ask a cluster,
bundled or Apache Kafka's.
"""

import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from broker.command_lines import acls, configs, groups, quotas, topics, transactions, users
from runtime.program.command import Act, Command, Completes, Option, Options, Word
from runtime.program.program import BadInput, ExitStatus, Faults, Program

MAX_PORT: Final = 65_535
MAX_BROKERS: Final = 100
SECURED: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The protocols of a second listener; the first one speaks PLAINTEXT."""


def _count(text: str) -> int:
    value = _number(text)
    if not 1 <= value <= MAX_BROKERS:
        raise ArgumentTypeError(f"{value} is not between 1 and {MAX_BROKERS}")
    return value


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from error


def _port(text: str) -> int:
    value = _number(text)
    if not 0 <= value <= MAX_PORT:
        raise ArgumentTypeError(f"there is no port {value}")
    return value


def _zookeeper(text: str) -> str:
    from broker.zookeeper.address import check_address

    try:
        check_address(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _protocol(text: str) -> str:
    if text not in SECURED:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(SECURED)}")
    return text


def _run() -> Act:
    import trio

    from broker.config import BrokerConfig, parse_config
    from broker.garbage import freeze_what_stays
    from broker.node import run_broker
    from broker.parent import cancel_without_parent
    from runtime.configuration.properties import parse_override, read_properties
    from runtime.process.signals import cancel_on_signal

    def config(options: Options) -> BrokerConfig:
        properties = read_properties(options.properties)
        for override in map(parse_override, options.override):
            properties[override.key] = override
        return parse_config(properties.values(), file=str(options.properties))

    async def run(options: Options) -> int:
        parsed = config(options)
        async with trio.open_nursery() as nursery:
            await nursery.start(cancel_on_signal, nursery.cancel_scope)
            if options.end_with_stdin:
                nursery.start_soon(cancel_without_parent, nursery.cancel_scope)
            await nursery.start(run_broker, parsed)
            nursery.start_soon(freeze_what_stays)
        return ExitStatus.DONE

    return run


def _up() -> Act:
    from broker.ports import PortWishes
    from broker.up import UpOptions, bring_up
    from runtime.configuration.properties import parse_override, read_properties
    from runtime.process.logs import LogSettings, configure

    async def up(options: Options) -> int:
        _require_ports("--port", options.port, options.brokers)
        _require_ports("--metrics-port", options.metrics_port, options.brokers)
        if options.zookeeper is not None and options.zookeeper_port:
            raise BadInput("--zookeeper-port: the servers of --zookeeper have ports of their own")
        configure(f"cluster {options.cluster_name}", options.log_flags.over(LogSettings()))
        file = options.properties
        settings = [] if file is None else [*read_properties(file).values()]
        settings += map(parse_override, options.override)
        wanted = UpOptions(
            name=options.cluster_name,
            data=options.data.resolve(),
            ports=PortWishes(
                host=options.host,
                brokers=options.brokers,
                broker_port=options.port,
                zookeeper_port=options.zookeeper_port,
                metrics_port=options.metrics_port,
                has_second_listener=options.also is not None,
            ),
            also=options.also,
            zookeeper=options.zookeeper,
            ready_file=options.ready_file,
            overrides={entry.key: entry.value for entry in settings},
            ends_with_stdin=options.end_with_stdin,
            log_words=tuple(options.log_flags.words()),
        )
        await bring_up(wanted)
        return ExitStatus.DONE

    return up


def _require_ports(option: str, first: int | None, count: int) -> None:
    """Raise BadInput if the last broker of a row has no port; 0 and None let the system choose."""
    if first and first + count - 1 > MAX_PORT:
        raise BadInput(f"{option} {first}: there is no port {first + count - 1}")


def _faults() -> Faults:
    from broker.commands.reaching import CommandFailed
    from broker.listeners import CannotListen
    from broker.log.config import InvalidConfig
    from broker.log.results import StorageError
    from broker.up import ClusterFailed
    from broker.zookeeper.store import BrokerIdTaken
    from broker.zookeeper.taking_over import NotOurCluster
    from broker.zookeeper.tree import MalformedNode
    from runtime.configuration.reading.mistakes import ConfigurationError
    from runtime.coordination.zookeeper import ZooKeeperFault
    from runtime.pages.metrics import AddressInUse
    from runtime.process.java import JavaMissing
    from runtime.process.zookeeper_server import ZooKeeperServerFailed
    from runtime.program.agreement import NotAgreed

    failed = (
        AddressInUse,
        BrokerIdTaken,
        CannotListen,
        ClusterFailed,
        CommandFailed,
        JavaMissing,
        MalformedNode,
        NotAgreed,
        NotOurCluster,
        StorageError,
        ZooKeeperFault,
        ZooKeeperServerFailed,
    )
    return {
        **dict.fromkeys(failed, ExitStatus.FAILED),
        **dict.fromkeys((ConfigurationError, InvalidConfig), ExitStatus.BAD_INPUT),
    }


COMMON: Final = (
    Option(
        names=("--end-with-stdin",),
        help="end when standard input ends, so that a child does not outlive its parent",
    ),
    Option(
        names=("--override",),
        metavar="KEY=VALUE",
        help="set a broker property; the option may be repeated",
        is_repeated=True,
    ),
)
PROGRAM: Final = Program(
    name="broker",
    description="Run the bundled Kafka broker or a whole local cluster; look after any Kafka "
    "cluster.",
    commands=(
        Command(
            name="run",
            help="Run one broker in the foreground.",
            load=_run,
            has_json=False,
            examples=(
                "broker run server.properties",
                "broker run --override log.retention.hours=24 server.properties",
            ),
            words=(
                Word(
                    name="properties",
                    metavar="PROPERTIES",
                    help="a server.properties in Kafka's format",
                    convert=Path,
                    completes=Completes.FILE,
                ),
            ),
            options=COMMON,
        ),
        Command(
            name="up",
            help="Run a whole local cluster and its ZooKeeper.",
            load=_up,
            has_json=False,
            examples=(
                "broker up",
                "broker up --brokers 1 --port 9092 --data /var/lib/broker-data",
                "broker up --port 0 --ready-file ready.json",
                "broker up --also SASL_SSL --properties security.properties",
                "broker up --zookeeper 127.0.0.1:2181/dc1",
            ),
            options=(
                Option(
                    names=("--brokers",),
                    metavar="N",
                    help="how many brokers",
                    default=3,
                    convert=_count,
                ),
                Option(
                    names=("--data",),
                    metavar="FOLDER",
                    help="the data, kept from run to run",
                    default=Path("broker-data"),
                    convert=Path,
                    completes=Completes.DIRECTORY,
                ),
                Option(
                    names=("--host",),
                    metavar="HOST",
                    help="the address where brokers and ZooKeeper listen",
                    default="127.0.0.1",
                ),
                Option(
                    names=("--port",),
                    metavar="PORT",
                    help="the first broker's port; 0 takes free ones",
                    default=9092,
                    convert=_port,
                ),
                Option(
                    names=("--also",),
                    metavar="PROTOCOL",
                    help="a second listener of each broker at a free port: SSL, SASL_PLAINTEXT or "
                    "SASL_SSL; --override says with which keys and users",
                    convert=_protocol,
                ),
                Option(
                    names=("--properties",),
                    metavar="FILE",
                    help="properties of all brokers, in Kafka's format; what is secret stands "
                    "better there than in a command line, which every user can see",
                    convert=Path,
                    completes=Completes.FILE,
                ),
                Option(
                    names=("--zookeeper-port",),
                    metavar="PORT",
                    help="ZooKeeper's port; 0 takes a free one",
                    default=0,
                    convert=_port,
                ),
                Option(
                    names=("--zookeeper",),
                    metavar="ADDRESS",
                    help="servers that run by themselves, host:port[,host:port][/chroot], instead "
                    "of one of the cluster's own; clusters with different chroots may share them",
                    convert=_zookeeper,
                ),
                Option(
                    names=("--cluster-name",),
                    metavar="NAME",
                    help="the cluster's name in messages",
                    default="dc1",
                ),
                Option(
                    names=("--metrics-port",),
                    metavar="PORT",
                    help="the first broker's port for metrics; 0 takes free ones (default: none)",
                    convert=_port,
                ),
                Option(
                    names=("--ready-file",),
                    metavar="PATH",
                    help="JSON with the addresses, written when the cluster is ready",
                    convert=Path,
                    completes=Completes.FILE,
                ),
                *COMMON,
            ),
        ),
        *topics.COMMANDS,
        *groups.COMMANDS,
        *configs.COMMANDS,
        *acls.COMMANDS,
        *users.COMMANDS,
        *quotas.COMMANDS,
        *transactions.COMMANDS,
    ),
    examples=("broker up", "broker run server.properties", "broker topics list"),
    nouns={
        "topics": "List, describe, create, grow and delete topics.",
        "groups": "List, describe, reset and delete consumer groups.",
        "configs": "Show, set and take back settings of topics and brokers.",
        "acls": "List, add and remove entries of rights.",
        "users": "List, add and remove users of SCRAM.",
        "quotas": "List, set and take away quotas.",
        "transactions": "List and describe transactions; find and abort those that hang.",
    },
    statuses={
        ExitStatus.DONE: "The program ended as it was asked to.",
        ExitStatus.FAILED: "The broker or the cluster failed while it started or ran.",
        ExitStatus.BAD_INPUT: "The input is bad.",
    },
    faults=_faults,
    extra="local",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    return PROGRAM.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
