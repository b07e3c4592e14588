"""The comparison of one partition, as plain functions; a worker settles a partition at a time.

`looks` says how to look into a window, `settling` goes through it, `outcomes` names what differs,
`alterations`, `cut_logs`, `cases`, `superseded` and `explain` tell why, `judgements` are the rows
that come back, `summary` adds up.
"""
