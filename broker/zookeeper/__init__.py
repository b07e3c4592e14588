"""The cluster in ZooKeeper, under the paths and in the JSON of Apache Kafka 3.9 (`ZkData`).

`tree` knows paths and JSON; `store` reads and writes for every broker, `controller_store` for the
active controller alone, each write fenced by its epoch.
"""
