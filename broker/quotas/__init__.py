"""Quotas of clients (KIP-13, KIP-55): how many bytes a second a user or a client id may move.

`entity` names who has a quota, `table` finds the one that holds, `rate` measures, and
`client_quotas` says for how long a client has to wait.
"""
