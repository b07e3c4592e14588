"""What stands before the handlers where an authorizer is set: who may ask for what.

A guard asks about the rights that its API needs, lets the handler answer for what is allowed, and
answers for the rest itself with Kafka's error codes. `table` says which guard stands where.
"""
