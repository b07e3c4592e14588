"""The coordinator of groups of both protocols, and the offsets that groups commit."""
