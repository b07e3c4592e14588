"""How often a property is tried: a few examples in `make test`, many in `make fuzz`.

In `make test` they are the same each time, so that more of them find nothing new from run to run.
Fewer still are enough for what is also tried at each version of each message, and for state
machines, as long as each of their rules comes in many orders. `make fuzz` draws other examples
each time.
"""

import inspect
import os
from typing import Final

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, seed, settings

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


def keep_nothing(config: pytest.Config) -> None:
    """Have no key made for a database of examples, where there is none.

    Hypothesis reads a test's whole source for it, unless a seed for all is given.
    """
    if PROFILE == "default" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = 1


def seed_by_name(item: pytest.Item) -> None:
    """Have a property draw the same examples each time it is run under its name.

    Hypothesis would else draw by a digest of the source, which it reads anew for each version of
    each message: a quarter of what such a test costs.
    """
    test = getattr(item, "obj", None)
    if PROFILE == "default" and inspect.isfunction(test) and is_hypothesis_test(test):
        seed(item.nodeid)(test)
