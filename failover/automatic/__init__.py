"""Promotions that begin by themselves, and the operator's hold, which keeps any from beginning.

`votes` are what each place sees of the sites, `quorum` counts them (pure), and `stoppable` ends a
promotion that nobody has commanded as soon as somebody holds or the lost site is seen again.
"""
