"""What stands around what is measured: two clusters and a witness, full topics, a long line.

`clusters` starts them and a mirror between them, `filling` and `steady` bring records, and `relay`
is the limit that a mirror is held against.
"""
