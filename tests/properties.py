"""How often a property is tried: a few examples in `make test`, many in `make fuzz`.

In `make test` they are the same each time, so that more of them find nothing new from run to run.
Fewer still are enough for what is also tried at each version of each message, and for state
machines, as long as each of their rules comes in many orders. `make fuzz` draws other examples
each time.
"""

import os
from typing import Final

from hypothesis import HealthCheck, settings

FEW: Final = 15
"""Hypothesis tries 100 by itself."""
PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")


def register_profiles() -> None:
    """Have hypothesis know the profiles, and take the one that the environment names."""
    settings.register_profile(
        "default",
        derandomize=True,
        max_examples=FEW,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.register_profile(
        "many", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile("thorough", max_examples=2_000, deadline=None, print_blob=True)
    settings.load_profile(PROFILE)


def examples(few: int, many: int = 100) -> int:
    """Return how many examples a property is tried with that is dear, or tried of many things."""
    return few if PROFILE == "default" else many
