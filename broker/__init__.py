"""The bundled Kafka-protocol broker: the embedded default for trying, testing and drills."""
