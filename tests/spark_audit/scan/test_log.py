"""What the program's log says of py4j."""

import logging

import pytest

from runtime.process.logs import configure
from spark_audit.session import quieten_py4j


def test_what_py4j_does_again_by_itself_is_no_line_of_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        configure("spark-audit")
        quieten_py4j()
        logging.info("Exception while sending command.")  # noqa: LOG015 - as py4j does it
        logging.getLogger("py4j.clientserver").info("Closing down clientserver connection")
        logging.getLogger("spark_audit.run").info("ours")
        logging.error("Exception while sending command.")  # noqa: LOG015 - it has given up
        said = [line.partition("spark-audit ")[2] for line in capsys.readouterr().err.splitlines()]
    finally:
        logging.getLogger().handlers[:] = handlers
        logging.getLogger().setLevel(level)
        logging.getLogger("py4j").setLevel(logging.NOTSET)
    assert said == ["INFO spark_audit.run: ours", "ERROR root: Exception while sending command."]
