"""The record's way, from a fetch on the source to the acknowledgement of the target.

`source` fetches what `fetch_plan` names, over `lanes`; `routing` decides on each batch; `target`
produces and `acknowledgements` takes over what the target has confirmed. `refusals` and `damage`
name what stops.
"""
