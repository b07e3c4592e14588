"""What there is to type: a module for each kind of command.

`running` runs and shows, `orders` leaves an order in the witness, `positions` asks for positions of
groups, `repairs` rebuilds, `config_file` is about the file alone. A command imports what it calls
when it runs, so `--help` is quick.
"""
