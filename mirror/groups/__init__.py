"""Group positions: read on the source, translated, and written on the target.

`group_offsets` (or `group_polling`) reads commits into `source_groups`; `agenda` says which group
is due; `sync` translates, writes checkpoints through `checkpoint_log` and commits on the target.
"""
