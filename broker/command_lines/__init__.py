"""What there is to type for `broker topics`, `groups` and their like; imports nothing heavy."""
