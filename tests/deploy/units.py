"""The units of systemd in `deploy`."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES: Final = sorted(FOLDER.glob("*.service"))
INSTALLED: Final = "/opt/kafka-dr/bin"
"""Where the units look for the programs."""
