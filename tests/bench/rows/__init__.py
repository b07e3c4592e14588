"""One file for each kind of row: what is done, by which systems, and what is taken of it.

Mirrors: `catching_up`, `latency`, `killing`, `rereading`, and `draining` on one core; brokers:
`brokers` alone, and `replicated` three of them with `clients`.
"""
