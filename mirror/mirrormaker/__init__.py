"""The traces of MirrorMaker 2 and Kafka Connect, and the topics that their clients expect.

`mm2_properties` reads their file, `connect_offsets` the position at which they stopped;
`internal_topics` writes offset syncs and heartbeats as they do.
"""
