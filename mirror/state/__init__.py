"""The state that the tasks of one flow share, in objects that change by their own methods. No I/O.

A flow has `flow_partitions`, `in_flight` (the budget of bytes), `throttle`, `wakeups` and a gate,
`work_share`, `orders_in_force`, `reverse_flow`, `mirrored_progress`, `interruptions`, `live_config`
and `measurements`. Each task takes those that it uses; `mirror/flow` puts them together.
A `partition` walks its `partition_state` and is made of `source_log`, `target_log`, `leadership`,
`in_flight`, `retries` and `skips`; `batches` travel.
"""
