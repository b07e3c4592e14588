"""The process that Spark forks workers from, on this machine: it has imported all they need.

Spark's own daemon imports none of it, so each worker would, for half a second of a processor.
"""

from pyspark import daemon

from spark_audit import spark_reader
from spark_audit.no_pandas import forgo_pandas

__all__ = ["spark_reader"]

if __name__ == "__main__":
    forgo_pandas()
    daemon.manager()
