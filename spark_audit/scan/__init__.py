"""Reading logs in Spark's workers.

`scan_plan` cuts logs into tasks, `reading` hands them to Spark, `scan` fetches and walks the
batches, `digests` and `windows` make ranges and records of them, `sinks` and `scan_rows` the rows
that come back.
"""
