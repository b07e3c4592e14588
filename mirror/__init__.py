"""The daemon that forwards record batches from the source cluster to the target, exactly once.

`cli` starts the `daemon` (or `supervisor` with several), which runs each flow of the file (`flow`).
A flow shapes `topics`, finds where each partition goes on (`start`), forwards its records
(`forward`) with the durable `map`, and translates `groups`; `commands` and `report` look at it.
"""
