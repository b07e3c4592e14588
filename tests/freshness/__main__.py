"""`python -m tests.freshness [WHAT]`: how soon positions are there, and how exact.

`groups`: commits at a steady rate; `lags`: groups at every lag over planned switches; `maps`: what
maps cost; `promotions`: what a planned switch of 1,000 partitions and 300 groups takes, also beside
another checkout.

Exit status: 0 the figures are reached, 1 they are not, 2 the run came to no figure.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.bench.measure.ledger import run_reported, say
from tests.bench.measure.machine import ROOT
from tests.bench.stage.clusters import cold_stage, run_apache, run_bundled
from tests.freshness.figures import CPU_LIMIT, told
from tests.freshness.lags import SCENES, Scene
from tests.freshness.load import Load, measure
from tests.freshness.maps import costs
from tests.freshness.promotions import print_promotions
from tests.freshness.switched import all_exact, head, row
from tests.interop.selection import QUICK_PAIR
from tests.interop.sites import BUNDLED, Pair, run_sites


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for."""
    options = _parser().parse_args(arguments)
    measure = {"maps": _maps, "lags": _lags, "groups": _groups, "promotions": _promotions}[
        options.what
    ]
    return run_reported(options.what, partial(measure, options))


def _maps(_: argparse.Namespace) -> int:
    found = []
    for cost in costs():
        sys.stdout.write(f"{cost}\n")
        found.append(cost)
    return 0 if all(cost.is_reached for cost in found) else 1


def _lags(options: argparse.Namespace) -> int:
    pair = QUICK_PAIR if options.apache else Pair(source=BUNDLED, target=BUNDLED)
    others = {"there-and-back"} if options.apache else {"transactional"}
    names = options.only or [name for name in SCENES if name not in others]
    found = []
    with tempfile.TemporaryDirectory() as name, run_sites(Path(name), pair) as sites:
        say(f"{pair}\n{head()}")
        for scene in names:
            told = SCENES[scene](Scene(sites=sites, folder=Path(name) / scene, topic=scene))
            for one in told:
                sys.stdout.write(f"{row(one)}\n")
                sys.stdout.flush()
                found.append(one)
    return 0 if all_exact(found) else 1


def _promotions(options: argparse.Namespace) -> int:
    checkouts = [ROOT, *(path.resolve() for path in options.beside)]
    is_reached = print_promotions(
        checkouts,
        partitions=options.partitions or 1_000,
        groups=options.groups or 300,
        runs=options.runs,
    )
    return 0 if is_reached else 1


def _groups(options: argparse.Namespace) -> int:
    usual = Load()
    load = Load(
        groups=options.groups or usual.groups,
        partitions=options.partitions or usual.partitions,
        interval_s=options.interval_s,
        warm_s=options.warm_s,
        measured_s=options.seconds,
    )
    run_site = run_apache if options.apache else run_bundled
    with (
        tempfile.TemporaryDirectory() as name,
        cold_stage(Path(name), run_site, run_site) as stage,
    ):
        run = measure(stage, load)
    sys.stdout.write(told(run.freshness, run.usage, wrong=run.wrong))
    return 0 if run.freshness.is_reached and run.usage.mirror < CPU_LIMIT and not run.wrong else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.freshness", description=__doc__)
    usual = Load()
    kinds = ("groups", "lags", "maps", "promotions")
    parser.add_argument("what", nargs="?", choices=kinds, default="groups")
    parser.add_argument("--only", nargs="+", choices=SCENES, help="of the topics of `lags`")
    parser.add_argument("--groups", type=int)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="for `promotions`")
    parser.add_argument("--runs", type=int, default=3, help="of `promotions`")
    parser.add_argument("--interval-s", type=float, default=usual.interval_s)
    parser.add_argument("--warm-s", type=float, default=usual.warm_s)
    parser.add_argument("--seconds", type=float, default=usual.measured_s)
    parser.add_argument("--apache", action="store_true", help="between Apache Kafka brokers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
