"""The place at which a partition goes on after a start or an interruption.

`positioning` has `log_readings` read both logs' ends and the target's last batches (`target_tail`);
`doubts` says which logs must be read further; `start_position` decides; `last_record_check` looks
whether the source still holds the last mirrored record. What the target alone has after a
disaster, `quarantine` sets aside.
"""
