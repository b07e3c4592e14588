"""Where bearer tokens come from: a file, a command, or an issuer's endpoint (RFC 6749, 4.4).

A source blocks: our client asks in a worker thread, librdkafka in a thread of its own. Each keeps a
deadline and a limit of bytes. Nothing here puts a token, or what may be one, into a text.
"""
