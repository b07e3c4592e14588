"""The snapshot of an audit: the bounds of both logs, read once before anything is scanned.

`snapshot` asks both clusters (`cluster_bounds`) and the witness; `seals` and `directions` say what
each promotion sealed; `arrival_map` and `origins` who brought which records; `bounds` what is
compared with what.
"""
