"""A record a second from the active site to the others: how long it takes, and whether it comes.

`ledger` counts what was sent and what arrived, `flow_canary` sends and reads along one flow, and
`watch` keeps one of them for each flow and shows their counts.
"""
