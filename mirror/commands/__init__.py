"""The commands beside `mirror run`: what each looks at, changes and prints.

A command reads both clusters and the witness from outside the daemon (`outside_view`,
`flow_without_daemon`), decides, and prints a table or JSON. `orders` writes to the witness what
the daemons then carry out; `rebuild_map`, `refill` and `take_over` write to the target only with
--write.
"""
