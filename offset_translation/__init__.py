"""Exact offset translation between a source log and its mirrored copy: no I/O, no clock."""
