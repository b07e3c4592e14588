"""The example for Kustomize with two clusters of Strimzi."""

from pathlib import Path
from typing import Final

EXAMPLE: Final = Path(__file__).parents[2] / "deploy" / "kustomize" / "strimzi"
