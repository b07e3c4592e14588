"""`python -m tests.drill [--seed N] [--seconds N]`: exit status 0 kept, 1 offences, 2 no drill.

With `--failover` promotions are drilled, by rounds; with `--audit` the audit, by planted faults.
With `--partitions N` no faults are drawn: starts and moves of leaders are measured instead; with
`--groups N` how soon so many groups are stable after a broker's death.
"""

import argparse
import logging
import random
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from tests.drill import many_groups, many_partitions, mirror_drill
from tests.drill.audit import drill as audit_drill
from tests.drill.cluster import DrillFailed
from tests.drill.drill import Options, drill, report
from tests.drill.failover import drill as failover_drill
from tests.drill.failover import pairs
from tests.drill.failover.stage import Stage
from tests.drill.tokens import drill as tokens_drill
from tests.interop.peers import PeerUnavailable

FOLDER = Path("build/drill")
GAP_S = 2.0
"""So long no record may come while tokens are renewed, on a machine with other work."""
_T = TypeVar("_T")


def main() -> int:
    """Run one drill and say what came out; what failed keeps its folder."""
    parser = argparse.ArgumentParser(prog="drill", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--factor", type=int, default=3)
    parser.add_argument("--rate", type=int, default=400, help="records a second per producer")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--mirror", action="store_true", help="drill the mirror instead")
    parser.add_argument("--failover", action="store_true", help="drill promotions instead")
    parser.add_argument("--audit", action="store_true", help="drill the audit instead")
    parser.add_argument("--faults", type=int, default=700, help="plant so many for the audit")
    parser.add_argument("--apache", action="store_true", help="between sites of Apache Kafka")
    parser.add_argument("--secured", action="store_true", help="everything over TLS and SASL")
    parser.add_argument("--rounds", type=int, default=10**6, help="so many promotions at most")
    parser.add_argument("--tokens", action="store_true", help="drill short tokens instead")
    parser.add_argument("--life", type=int, default=20, help="seconds that a token holds")
    parser.add_argument("--partitions", type=int, help="measure so many instead")
    parser.add_argument("--groups", type=int, help="measure so many groups instead")
    given = parser.parse_args()
    folder = given.folder.absolute() / str(given.seed)
    shutil.rmtree(folder, ignore_errors=True)
    if given.audit:
        tell(f"drill AUDIT=1 SEED={given.seed} FAULTS={given.faults}")
    elif given.partitions is None and given.groups is None:
        tell(f"drill SEED={given.seed} SECONDS={given.seconds:g}")
    try:
        lines, is_kept = _kind(given)(given, folder)
    except (DrillFailed, PeerUnavailable) as fault:
        sys.stderr.write(f"drill: {fault}; see {folder}\n")
        return 2
    sys.stdout.write("\n".join(lines) + "\n")
    if not is_kept:
        sys.stdout.write(f"histories and logs are in {folder}\n")
        return 1
    shutil.rmtree(folder)
    return 0


def _kind(
    given: argparse.Namespace,
) -> Callable[[argparse.Namespace, Path], tuple[list[str], bool]]:
    if given.partitions is not None:
        return _many
    if given.groups is not None:
        return _many_groups
    if given.tokens:
        return _tokens
    if given.failover:
        return _failover
    if given.audit:
        return _audit
    return _mirror if given.mirror else _brokers


def _many(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    figures = _run(lambda: many_partitions.drill_many(folder, given.partitions))
    lines = many_partitions.report(figures, given.partitions)
    return lines, not any(figure.is_missed for figure in figures)


def _many_groups(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    figures = _run(lambda: many_groups.drill_groups(folder, given.groups))
    lines = many_groups.report(figures, given.groups)
    return lines, not any(figure.is_missed for figure in figures)


def _failover(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    options = failover_drill.Options(
        seed=given.seed,
        folder=folder,
        seconds=given.seconds,
        rounds=given.rounds,
        open_pair=_pair(given),
    )

    folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / "clients.log")  # of those in this process
    judged = failover_drill.drill(options, tell)
    is_kept = not any(one.findings for one in judged)
    return [f"{'PASSED' if is_kept else 'FAILED'}: {len(judged)} rounds"], is_kept


def _pair(given: argparse.Namespace) -> Callable[[Path], AbstractContextManager[Stage]]:
    if given.apache:
        return partial(pairs.apache, has_sets=True)
    return partial(pairs.secured if given.secured else pairs.bundled, has_sets=True)


def _audit(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    options = audit_drill.Options(
        seed=given.seed, folder=folder, faults=given.faults, is_secured=given.secured
    )
    drilled = audit_drill.drill(options, tell)
    return list(audit_drill.report(drilled)), drilled.is_kept


def _tokens(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    options = tokens_drill.Options(folder=folder, seconds=given.seconds, life_s=given.life)
    drilled = _run(lambda: tokens_drill.drill(options, tell))
    found = tokens_drill.offences(drilled, GAP_S)
    return list(tokens_drill.report(drilled, GAP_S)), not found


def tell(line: str) -> None:
    """Say at once what was done."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _brokers(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    options = Options(
        seed=given.seed,
        seconds=given.seconds,
        folder=folder,
        factor=given.factor,
        min_in_sync=max(1, given.factor - 1),
        rate=given.rate,
        is_secured=given.secured,
    )
    result = _run(lambda: drill(options, tell))
    return list(report(result, options)), not result.offences and not result.died


def _mirror(given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    options = mirror_drill.Options(
        seed=given.seed,
        seconds=given.seconds,
        folder=folder,
        rate=given.rate,
        is_secured=given.secured,
    )
    result = _run(lambda: mirror_drill.drill_mirror(options))
    return list(mirror_drill.report(result, options)), not result.offences


def _run(carry_out: Callable[[], Awaitable[_T]]) -> _T:
    """Return what the drill gives. Raises DrillFailed, out of whatever group it comes in."""
    results: list[_T] = []

    async def run() -> None:
        results.append(await carry_out())

    failures: list[str] = []
    try:
        trio.run(run)
    except* DrillFailed as group:
        failures = [str(error) for error in _leaves(group)]
    if failures:
        raise DrillFailed("; ".join(failures))
    return results[0]


def _leaves(group: BaseExceptionGroup[DrillFailed]) -> Iterator[DrillFailed]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


if __name__ == "__main__":
    sys.exit(main())
