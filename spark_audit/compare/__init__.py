"""The comparison, as named steps from DataFrame to DataFrame.

`compare` finds the ranges that differ, `arrow_steps` the records in them, `outcomes` names what
differs, `explain`, `superseded` and `cut_logs` what may be missing, `summary` adds up.
"""
