"""The doors to the two clusters: questions to them, and the form of their answers.

`links` opens them; `admin` changes topics; `log_ends`, `tail_reader` and `target_side` read;
`malformed_records` counts records of internal topics that make no sense.
"""
