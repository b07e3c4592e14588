"""What a promotion calls on its way: commands and webhooks of the operator's, at its steps.

`occasion` says what a hook is told, `call` makes one call, `around_steps` makes them before and
behind the steps of a promotion, and `called` is their trace in the journal.
"""
