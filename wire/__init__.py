"""The Kafka protocol and record batches; the only I/O is the trio client in wire.net."""
