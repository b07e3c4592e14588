"""The HTTP pages of every program, and who may read them."""
