"""The replicas on this broker: leadership, high watermark, in-sync replicas, waiters."""
