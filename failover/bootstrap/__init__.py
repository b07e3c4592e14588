"""`failover bootstrap`: what unmodified clients of any language have in `bootstrap.servers`.

`active_site` follows who is active, `relay` carries a connection to a broker of that site as long
as it asks for nothing but the way (`the_way`), `endpoint` listens and counts.
"""
