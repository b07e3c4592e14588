"""One Spark for all tests of this folder, and one audit for most: each costs more than they do."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark import SparkContext

from spark_audit.session import open_session
from tests.spark_audit.audits import (
    BehindPromotion,
    Everything,
    audit_behind_promotion,
    audit_everything,
)

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    """A local session with its JVM, gone with the tests."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # This checkout first: a borrowed environment has another one installed.
            paths = filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")])
            patch.setenv("PYTHONPATH", os.pathsep.join(paths))
            session = stack.enter_context(open_session(cores=2, driver_memory="1g"))
        yield session


@pytest.fixture(scope="session")
def everything() -> Everything:
    return audit_everything()


@pytest.fixture(scope="session")
def behind_promotion() -> BehindPromotion:
    return audit_behind_promotion()
