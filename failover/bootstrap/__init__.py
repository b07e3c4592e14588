"""`failover bootstrap`: what unmodified clients of any language have in `bootstrap.servers`.

`endpoint` listens and counts; `active_site` follows who is active; `broker_reach` connects to its
brokers. Where clients look again, `relay` carries what asks for the way (`the_way`). Where they are
forwarded, `forwarding` carries all: `spoken` says which versions, `addresses` which brokers,
`produce_requests` and `owned_ids` whose batches; `leaving` has members leave before a planned
switch, `arrivals` has them ask first behind it. What clients are denied is told from what a fence
denies all (`denials`, `fence_looks`).
"""
