"""Decide whether a promotion may begin, and what it would cost. Pure."""
