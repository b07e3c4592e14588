"""`python -m tests.freshness [groups | maps]`: how soon positions arrive; what maps cost.

Exit status: 0 the figures are reached, 1 they are not.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.stage import Stage, run_apache, run_bundled, run_witness
from tests.freshness.figures import CPU_LIMIT, told
from tests.freshness.load import Load, measure
from tests.freshness.maps import costs


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for."""
    options = _parser().parse_args(arguments)
    return _maps() if options.what == "maps" else _groups(options)


def _maps() -> int:
    found = []
    for cost in costs():
        sys.stdout.write(f"{cost}\n")
        found.append(cost)
    return 0 if all(cost.is_reached for cost in found) else 1


def _groups(options: argparse.Namespace) -> int:
    load = Load(
        groups=options.groups,
        partitions=options.partitions,
        interval_s=options.interval_s,
        warm_s=options.warm_s,
        measured_s=options.seconds,
    )
    run_site = run_apache if options.apache else run_bundled
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            run_site(folder, "dc1") as source,
            run_site(folder, "dc2") as target,
            run_witness(folder) as witness,
        ):
            stage = Stage(folder=folder / "runs", source=source, target=target, witness=witness)
            run = measure(stage, load)
    sys.stdout.write(told(run.freshness, run.usage, wrong=run.wrong))
    return 0 if run.freshness.is_reached and run.usage.mirror < CPU_LIMIT and not run.wrong else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.freshness", description=__doc__)
    usual = Load()
    parser.add_argument("what", nargs="?", choices=("groups", "maps"), default="groups")
    parser.add_argument("--groups", type=int, default=usual.groups)
    parser.add_argument("--partitions", type=int, default=usual.partitions)
    parser.add_argument("--interval-s", type=float, default=usual.interval_s)
    parser.add_argument("--warm-s", type=float, default=usual.warm_s)
    parser.add_argument("--seconds", type=float, default=usual.measured_s)
    parser.add_argument("--apache", action="store_true", help="between Apache Kafka brokers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
