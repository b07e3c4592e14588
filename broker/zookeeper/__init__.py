"""The cluster in ZooKeeper, under the paths and in the JSON of Apache Kafka 3.9 (`ZkData`)."""
