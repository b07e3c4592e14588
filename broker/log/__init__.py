"""Partition logs on disk in Apache Kafka's own format: segments, indexes, checkpoints, recovery.

`log_manager.LogManager` opens the log folders and hands out one `partition_log.PartitionLog` per
partition; what an append or a read may answer is in `results`, the topic settings in `config`.
Everything here is synchronous: appends and reads go through the page cache and take microseconds.
"""
