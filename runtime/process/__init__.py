"""A process on its machine: signals, children, clocks, standard streams, logs, Java."""
