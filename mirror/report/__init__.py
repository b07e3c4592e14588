"""The reports of the running daemon: `/status`, `/metrics` and the workers' shares of them.

`status` makes one flow's report, `worker_statuses` merges those of several workers, `exporter`
collects the metrics, and `pages` serves both a slice at a time.
"""
