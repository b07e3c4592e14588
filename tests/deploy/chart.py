"""The chart for Helm, and the values that it is tried with."""

from pathlib import Path
from typing import Final

CHART: Final = Path(__file__).parents[2] / "deploy" / "helm" / "kafka-disaster-recovery"
TRIED: Final = sorted((CHART / "ci").glob("*.yaml"))
