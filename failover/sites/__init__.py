"""The two sites as a promotion sees them: what is closed, what is mirrored, and what is not ours.

`fence` closes by a setting and `fence_rights` by rights, `shared_fence` keeps the part of each
set, `probe` tries. `map_follower` reads the map, `mirrored_ends` finds where a lost source's copy
ends; `other_log` and `foreign_writers` read both logs, `pair_evidence` the evidence of the pair.
"""
