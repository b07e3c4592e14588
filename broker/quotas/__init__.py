"""Quotas of users and client ids: bytes (KIP-13), the broker's time (KIP-124), changes (KIP-599).

`entity` names who has a quota, `table` finds the one that holds, `rate`, `work` and `mutations`
measure, and `client_quotas` says for how long a client has to wait.
"""
