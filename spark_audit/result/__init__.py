"""The result of an audit: its verdict, kept on disk, printed and exported.

`coverage` adds up what became of each offset, `verdict` is the value that says what is clean,
`store` keeps it, `report` prints it, `prometheus` writes the metrics file and `exporter` serves
it.
"""
