"""From looks at processes to rows: who takes turns, what the kernel accounts, what a figure is.

`turns` and `rounds` let systems work, `processes` looks at them, `figures` makes rates of that, and
`ledger` keeps what came of it for `results`.
"""
