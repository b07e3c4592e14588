"""The durable offset map: a topic on the target with the start of every piece.

`map_log` reads and writes it, `reached` notes how far a shared log is mirrored, `reverse_map`
reads the other direction's map, and `trimming` takes out what lies before both logs' starts.
`believed` leaves out what others have written there, and `unbelieved_watch` shows it; commands ask
`known_writers` who may write.
"""
