"""What the commands of `failover` do and print, until they end or a signal stops them.

A module each, so that a command imports what it needs: a look is there before a promotion could
be. `running` has what they share.
"""
