"""One Spark for all tests of this folder: starting it takes longer than they do."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_audit.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with its JVM, gone with the tests."""
    with open_session(cores=2, driver_memory="1g") as session:
        yield session
