"""The target's topics follow the source's: existence, partitions, settings, rights.

`discovery` looks at both clusters, `choice` and `plan` decide, `changes` applies. `recreated` has
the rule for a topic that was deleted and made again on the source. `missing` and `gone_topics` say
when a topic is gone; `setting_*`, `refused_settings`, `acls` and `rights` the rest.
"""
