"""The surroundings of every program's logic: the YAML file, ZooKeeper, metrics, Java."""
