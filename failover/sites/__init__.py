"""The two sites as a promotion sees them: what is closed, what is mirrored, and what is not ours.

`fence` closes, `probe` tries; the other modules read both logs, and the evidence of the pair.
"""
