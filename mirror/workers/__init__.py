"""The share of each worker, where several workers mirror one flow.

`balance` weighs the partitions, `assignment` shares them out, `handover` holds the rules of
moving one (all pure). `share` applies it to this worker; `peer_progress` knows how far the others
are.
"""
