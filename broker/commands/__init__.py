"""What `broker topics`, `groups` and their like do: ask any Kafka cluster over the wire, and show.

Nothing here knows the bundled brokers: Apache Kafka is asked in the same way.
"""
