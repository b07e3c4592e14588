"""Promotion of a site as a journalled state machine, and the client that follows the active one.

`snapshot` looks, `plan` decides, and `promote` begins or resumes; `steps` names what comes next,
`execute` writes the journal around each step, and `effects` does it. A successor first looks again
(`execute.Executor.look_again`). `serve.program` is `failover serve`: it closes the idle site
(`guard`), ends promotions without a controller (`orphans`) and renews the clusters' evidence.
"""
