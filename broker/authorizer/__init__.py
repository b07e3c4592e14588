"""Rights: entries from ZooKeeper are kept by pattern, a question is decided, verdicts are kept.

`verdict` has the rules, `acl_index` the entries, `authorizer` joins both and remembers answers,
`acl_watch` follows ZooKeeper. Which API asks which question stands in `broker.guards.table`.
"""
