"""The state that the tasks of one flow share, in objects that change by their own methods. No I/O.

`flow_state` holds the flow: its `partition`s, `in_flight` (the budget of bytes), `wakeups`,
`work_share`, `orders_in_force`, `reverse_flow`, `mirrored_progress`, `throttle`, `measurements`.
A `partition` walks its `partition_state` and is made of `source_log`, `target_log`, `leadership`,
`in_flight`, `retries` and `skips`; `batches` travel.
"""
