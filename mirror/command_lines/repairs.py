"""Commands that rebuild or seed what a flow needs, and that first show what they would do."""

from pathlib import Path
from typing import Final

from mirror.command_lines.shared import FLOW_OPTION
from runtime.program.command import Act, Command, Completes, Option, Word
from runtime.program.program import ExitStatus

WITNESS: Final = "127.0.0.1:2181"
WRITE: Final = Option(
    names=("--write",), help="write what was found; without it the command only shows it"
)


def _rebuild_map() -> Act:
    from mirror.commands.rebuild_map import rebuild_map

    return lambda options: rebuild_map(options.configuration, options.flow, write=options.write)


def _refill() -> Act:
    from mirror.commands.refill import refill

    return lambda options: refill(options.configuration, options.site, write=options.write)


def _import_mm2() -> Act:
    from mirror.commands.import_mm2 import import_mm2

    return lambda options: import_mm2(
        options.properties, zookeeper=options.zookeeper, write=options.write
    )


def _take_over() -> Act:
    from mirror.commands.take_over import take_over

    return lambda options: take_over(
        options.configuration, options.flow, topic=options.offsets_topic, write=options.write
    )


REPAIRS: Final = (
    Command(
        name="rebuild-map",
        help="Rebuild the offset map from both logs after its topic was lost.",
        load=_rebuild_map,
        examples=("mirror rebuild-map dc.yaml", "mirror rebuild-map --write dc.yaml"),
        reads_configuration=True,
        options=(WRITE, FLOW_OPTION),
        statuses={ExitStatus.FAILED: "The map of a partition could not be found; it is named."},
    ),
    Command(
        name="refill",
        help="Prepare a site that came back without its records to be filled from the other one.",
        load=_refill,
        examples=("mirror refill dc1 dc.yaml", "mirror refill dc1 --write dc.yaml"),
        words=(Word(name="site", metavar="SITE", help="the cluster that is empty"),),
        reads_configuration=True,
        options=(
            Option(
                names=("--write",), help="do it; without it the command only shows what it would do"
            ),
        ),
    ),
    Command(
        name="import-mm2",
        help="Translate a MirrorMaker 2 properties file into our YAML, and name the settings that "
        "have no counterpart.",
        load=_import_mm2,
        examples=(
            "mirror import-mm2 mm2.properties",
            "mirror import-mm2 --write --zookeeper witness:2181 mm2.properties",
            "mirror import-mm2 kafka-mirror-maker-2.yaml",
        ),
        words=(
            Word(
                name="properties",
                metavar="PROPERTIES",
                help="MirrorMaker's properties, or a YAML file with Strimzi's KafkaMirrorMaker2",
                convert=Path,
                completes=Completes.FILE,
            ),
        ),
        options=(
            Option(
                names=("--zookeeper",),
                metavar="HOST:PORT",
                default=WITNESS,
                help="the witness",
            ),
            Option(
                names=("--write",),
                help="write PROPERTIES with the suffix .yaml, a YAML file with .dc.yaml",
            ),
        ),
    ),
    Command(
        name="take-over",
        help="Continue where a stopped MirrorMaker 2 has left off: seed the offset map with its "
        "position.",
        load=_take_over,
        examples=("mirror take-over dc.yaml", "mirror take-over --write dc.yaml"),
        reads_configuration=True,
        options=(
            WRITE,
            Option(
                names=("--offsets-topic",),
                metavar="TOPIC",
                help="the offsets topic of MirrorMaker's Connect worker, if it is not the usual",
            ),
            FLOW_OPTION,
        ),
        statuses={ExitStatus.FAILED: "The map of a partition could not be found; it is named."},
    ),
)
