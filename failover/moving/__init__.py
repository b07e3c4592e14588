"""What a promotion does, in order: members leave, the log is drained, groups and flows move.

`effects` does a step by its name; each other module does one kind of step: `drain` waits, `groups`
moves positions, `seals` ends the map.
"""
