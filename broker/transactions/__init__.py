"""The transaction coordinator: ids and epochs, what is part of a transaction, and how it ends.

decide ─► append to `__transaction_state` ─► replay ─► wait until it is safe ─► answer
                                                          └─ an end: markers to all partitions
"""
