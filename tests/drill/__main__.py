"""`python -m tests.drill [--seed N] [--seconds N]`: exit status 0 kept, 1 offences, 2 no drill."""

import argparse
import random
import shutil
import sys
from pathlib import Path

import trio

from tests.drill.cluster import DrillFailed
from tests.drill.drill import Options, Result, drill, report

FOLDER = Path("build/drill")


def main() -> int:
    """Run one drill and say what came out; what failed keeps its folder."""
    parser = argparse.ArgumentParser(prog="drill", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--factor", type=int, default=3)
    parser.add_argument("--rate", type=int, default=400, help="records a second per producer")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    folder = given.folder / str(given.seed)
    shutil.rmtree(folder, ignore_errors=True)
    options = Options(
        seed=given.seed,
        seconds=given.seconds,
        folder=folder.absolute(),
        factor=given.factor,
        min_in_sync=max(1, given.factor - 1),
        rate=given.rate,
    )
    sys.stdout.write(f"drill SEED={options.seed} SECONDS={options.seconds:g}\n")
    sys.stdout.flush()
    results: list[Result] = []

    async def run() -> None:
        results.append(await drill(options))

    failures: list[str] = []
    try:
        trio.run(run)
    except* DrillFailed as group:
        failures = [str(error) for error in group.exceptions]
    if failures:
        sys.stderr.write(f"drill: {'; '.join(failures)}; see {folder}\n")
        return 2
    [result] = results
    sys.stdout.write("\n".join(report(result, options)) + "\n")
    if result.offences or result.died:
        sys.stdout.write(f"histories and logs are in {folder}\n")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
