"""Reading a YAML file key by key: `yaml_file` composes it, a `section` takes keys of one mapping.

`merge` brings in what a section takes over by `<<`, `addresses` has `host:port`, `mistakes` holds
all that is wrong with one file.
"""
