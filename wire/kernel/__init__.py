"""The chunk kernel: fetched chunks walked in native code, where that was built.

`chunk.c` does what `wire.record_batch.passing` does, with checksums of `crc32c.c`; hatch_build.py
compiles them. `chosen` says who walks.

C, and not Rust: it is 900 lines without a dependency either way. A C compiler is where Python's
headers are, takes a second and nothing from any registry, and the stable ABI is C's own. What C
does not check, lengths and ends, tests/fuzz does, with sanitizers.
"""
