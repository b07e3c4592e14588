"""The messages of the Kafka protocol, one file per API key; `table` has them all."""
