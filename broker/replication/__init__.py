"""The replicas on this broker: leadership, high watermark, in-sync replicas, waiters.

`partitions` holds what the controller has told; `partition` is one of them, `leadership` and
`replica` its roles. `in_sync` decides which followers are in sync (pure); `isr_changes` has the
controller write it. `fetchers` and `fetcher` follow other leaders, and `truncation` cuts by
leader epoch.
"""
