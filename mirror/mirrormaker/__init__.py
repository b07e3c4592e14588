"""What MirrorMaker 2 and Kafka Connect leave behind, and what their clients expect to find.

`mm2_properties` reads their file, `connect_offsets` where they stopped; `internal_topics` writes
offset syncs and heartbeats as they do.
"""
