"""ZooKeeper as trio has it, and the witness in it: its tree, values, registries and leases."""
