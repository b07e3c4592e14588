"""Partition logs on disk in Apache Kafka's own format: segments, indexes, checkpoints, recovery.

`log_manager.LogManager` opens the log folders and hands out one `partition_log.PartitionLog` per
partition; what an append or a read may answer is in `results`, the topic settings in `config`.
`readable_log` says where committed records end, by what `producer_state` knows of open
transactions; `producer_snapshot` and `loading` bring that back behind a restart. `markers` are
what ends a transaction in a log; who writes them is `broker.transactions`. Everything here is
synchronous: appends and reads go through the page cache and take microseconds.
"""
