"""What surrounds the logic of every program: the YAML file, ZooKeeper, metrics, Java."""
