"""Record peek: one partition of one site, by offset, time or key, for who is on call.

`question` reads what is asked for, `bounds` asks where the log lies, `look` takes records out of
batches within limits, `counterparts` finds the same records on the other site, `answer` puts these
together, `peek_page` shows that, and `peeker` says who may ask and writes down who has.
"""
