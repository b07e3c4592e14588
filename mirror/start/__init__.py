"""The place at which a partition goes on after a start or an interruption.

`positioning` gathers both logs' ends, the map and the target's last batches (`target_tail`);
`start_position` decides; `last_record_check` looks whether the source still holds the last
mirrored record. What the target alone has after a disaster, `quarantine` sets aside.
"""
