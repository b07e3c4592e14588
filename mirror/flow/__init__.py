"""One flow under the witness: whether it runs, who leads it, and the tasks at work while it does.

`runner` watches the witness and asks `run_decision` what to do; `membership` registers the worker
and takes its share; `engine` runs the tasks, each on its parts of `flow_state`;
`order_execution` carries out people's orders.
"""
