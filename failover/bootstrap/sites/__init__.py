"""What an endpoint asks of both sites.

`broker_reach` connects clients to brokers of whichever is active, which `broker_addresses` knows
one by one; `fence_looks` sees what a fence denies. `shared_look` serves all who wait by one look.
"""
