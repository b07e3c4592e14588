"""`python -m tests.interop [--quick] [PYTEST OPTION ...]`: run beside the real ones, and judge it.

Exit status 0: everything asked for was shown; 1: something failed; 2: nothing failed, but a peer
could not be had (no registry, no Java, no Go ...), so that for some rows nothing is known. This
program tells "not run" from "failed", because Make ends with 2 whatever failed, and pytest's own 2
is a broken collection. Each reason is printed as `not run: ...`. After a whole run
docs/compatibility.md is written anew. A whole run begins with `make stories`.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from tests.interop import compatibility
from tests.interop.matrix import QUICK_RESULTS, RESULTS, Row, read_rows
from tests.interop.sites import is_secured

QUICK: Final = "--quick"
QUICK_LIMIT_S: Final = 570
"""What has not begun by then is not run; ten minutes are promised."""
STORIES: Final = ("make", "stories")
"""What needs no peer, and is too long for `make test`; left out where files or tests are named."""
SHOWN, BROKEN, NOT_TOLD = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Run the tests and return the exit status."""
    is_quick = QUICK in arguments
    rows_file = QUICK_RESULTS if is_quick else RESULTS
    rows_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "interop", "tests/interop"]
    command += [f"--rows={rows_file}", *arguments]
    stories_status = 0
    if is_quick:
        command += [f"--limit-s={QUICK_LIMIT_S}"]
    elif not arguments and not is_secured():
        stories_status = subprocess.run(STORIES, check=False).returncode
    ended = subprocess.run(command, check=False)
    rows = read_rows(rows_file)
    if rows and not is_quick and not is_secured():
        compatibility.main()
    for line in told(rows):
        sys.stdout.write(f"{line}\n")
    return verdict(stories_status or ended.returncode, rows)


def told(rows: Iterable[Row]) -> list[str]:
    """Return a line for each reason for which rows were not run."""
    reasons = Counter(row.outcome for row in rows if row.was_not_run)
    return [f"{reason} ({count} rows)" for reason, count in sorted(reasons.items())]


def verdict(pytest_status: int, rows: Sequence[Row]) -> int:
    """Return the exit status; pytest's own 2 and above mean that it did not get to its end."""
    if pytest_status != 0 or not rows:
        return BROKEN
    return NOT_TOLD if any(row.was_not_run for row in rows) else SHOWN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
