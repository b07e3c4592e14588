"""Produce, Fetch and group positions by hand: what the schema codec does, for the hot messages.

Each function here says and reads exactly the bytes of the schema codec, which the tests hold it to;
what is unusual is left to the schema codec itself.
"""
