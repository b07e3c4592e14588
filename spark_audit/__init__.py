"""The nightly proof: both logs read by PySpark and compared record by record.

`run` opens a Spark `session` and audits each flow (`flow_audit`): it takes a `snapshot` of both
logs' bounds, reads them (`scan`), compares them (`compare`) and keeps the verdict (`result`).
"""
