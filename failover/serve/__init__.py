"""`failover serve`: keep the idle site closed, end what its controller left, show it as metrics."""
