"""Produce, Fetch, ListOffsets and group positions by hand: the bytes of the schema codec, faster.

Each function here says and reads exactly the bytes of the schema codec, which the tests hold it to;
what is unusual is left to the schema codec itself.
"""
