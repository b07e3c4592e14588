"""One file for each kind of row: what is done, by which systems, and what is taken of it.

Mirrors: `catching_up`, `latency`, `killing`, `rereading`, and `draining` on one core; brokers:
`brokers` alone, `replicated` three of them with `clients`, and `forwarding` through an endpoint.
"""
