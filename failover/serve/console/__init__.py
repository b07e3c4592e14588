"""The console of `failover serve`: is my data safe, could I fail over now, what would it cost?

`overview` answers that, `promotions` has steps as they are done and reports, `mirrors` asks the
mirrors, `sites` both clusters, `audits` reads the audit's results, `differences` both logs, and
`pages` joins them.
"""
