"""The record's way, from a fetch on the source to the acknowledgement of the target.

`fetchers` has a `source` fetcher at each broker, which asks for what `fetch_plan` names over
`lanes`; `routing` decides on each batch; `writers` hands it to the `target` writer of its leader,
in a `ready_line`; `produce_answers` acts on what the broker says and `acknowledgements` takes over
what it holds. `committed` and `loops` say what is left out, `refusals` and `damage` what stops.
`open_transactions` names what holds partitions back. `flow_parts` names what all these share with
the flow.
"""
