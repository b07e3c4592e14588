"""Exact source-to-target offset maps and translated group positions. Pure logic: no I/O, no clock."""
