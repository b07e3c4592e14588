"""The daemon that forwards record batches from the source cluster to the target, exactly once."""
