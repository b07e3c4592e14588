"""The comparison of one partition, as plain functions; a worker settles a partition at a time.

`looks` says how to look into a window, `settling` goes through it, `outcomes` names what differs,
`alterations`, `cut_logs`, `cases`, `later_keys`, `superseded` and `explain` tell why, `bulk` judges
what is too much to be told one by one, `judgements` are the rows that come back, `summary` adds up.
"""
