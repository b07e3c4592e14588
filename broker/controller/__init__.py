"""The controller: one broker that decides who leads which partition.

`controller` contends for the role; `active_controller` takes each event to `decisions` (pure),
writes what is decided to ZooKeeper and announces it. `elections`, `moves`, `placement` and
`requests` hold the rules; a leader's AlterPartition, which changes the in-sync replicas, is
judged in `requests`.
"""
