"""The state that the tasks of one flow share. No I/O.

`partition` is one mirrored partition with its `partition_state`; `flow_state` holds the
partitions of a flow, `orders` what people have ordered, `throttle` and `measurements` its rates,
`batches` what travels.
"""
