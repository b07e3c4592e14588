"""The target's topics follow the source's: existence, partitions, settings, rights.

`discovery` looks at both clusters, `choice` and `plan` decide, `changes` applies. `recreated` has
the rule for a topic that was deleted and made again on the source. `missing` and `gone_topics` say
when a topic is gone; `first_look` and `lone_topics` say what the target alone has;
`setting_*`, `refused_settings`, `acl_sync` and `rights` do the rest.
"""
