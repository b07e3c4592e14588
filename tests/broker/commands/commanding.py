"""Commands of `broker` that ask one cluster, run to their end inside this process."""

import json
from typing import Any

from tests.commands import run_broker_command


class Commands:
    """Runs commands against one cluster, and looks at their exit statuses."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def said(self, *words: str, status: int = 0) -> str:
        """Return what a command printed, or complained of."""
        ended = run_broker_command(*words, "--bootstrap", self.bootstrap)
        assert ended.returncode == status, ended
        return ended.stdout or ended.stderr

    def told(self, *words: str, status: int = 0) -> Any:
        """Return the JSON that a command printed."""
        return json.loads(self.said(*words, "--json", status=status))
