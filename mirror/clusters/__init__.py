"""The doors to the two clusters: what is asked of them and in which form it comes back.

`links` opens them; `admin` changes topics; `log_ends`, `tail_reader` and `target_side` read;
`malformed_records` counts what an internal topic holds that makes no sense.
"""
