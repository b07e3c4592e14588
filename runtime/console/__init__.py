"""The console: pages for people that `failover serve` and `mirror run` serve, read-only and live.

`console` answers requests, `frame` and `tables` make HTML, `watched` looks while somebody reads,
`flow_summary` and `flow_lines` are what a mirror says of itself, `flow_pages` shows that.
"""
