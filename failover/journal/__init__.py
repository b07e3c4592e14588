"""The journal of a promotion: its steps, what they found out, and who may write it.

`lease` lets one controller write, `execute` writes before and after each step, `store` keeps it.
"""
