"""The result of an audit: its verdict, kept on disk, printed and exported.

`verdict` is the value, `store` keeps it, `report` prints it, `prometheus` writes the metrics file
and `exporter` serves it.
"""
